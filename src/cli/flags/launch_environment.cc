#include "cli/flags/launch_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <iterator>

#include "cli/flags/flag_checks.h"
#include "cli/flags/kubernetes.h"
#include "cli/flags/meeting_plan.h"
#include "cli/flags/process_reader.h"
#include "cli/flags/slurm.h"
#include "cli/flags/tf_config.h"
#include "paceline/cluster.h"
#include "paceline/error.h"
#include "params/collective/collectives_kind.h"

namespace paceline {
namespace {

/// A system that describes its job to each process by variables.
struct Source {
  std::string_view name;    // of --launcher
  std::string_view system;  // in words
  const char* processes;    // the variable with the number of processes, or null
  const char* index;        // the variable with the number of this process, or null
  std::string_view one;     // how a user of the system starts one process
  /// A variable that only the system itself sets. If it is null, scripts may have set the
  /// variables, and the system that started the process may contradict them.
  const char* own;
  /// Says how users of this launcher give each process the job's key.
  std::string_view key;
  /// Reads the flags of one of several processes, for a system that tells the addresses of all.
  std::vector<GivenFlag> (*read)(const Environment& environment, const GivenTasks& tasks) = nullptr;
  /// Reads where the processes meet to learn the addresses. If `read` and `meet` are both null, the
  /// system is recognised but its job cannot be joined.
  MeetingPlan (*meet)(const Environment& environment) = nullptr;
  const char* address = nullptr;  // the variable with the host where they meet

  bool joins() const { return read != nullptr || meet != nullptr; }
};

std::vector<GivenFlag> read_tf_config(const Environment& environment, const GivenTasks&) {
  return flags_of_tf_config(text_in(environment, "TF_CONFIG"));
}

std::vector<GivenFlag> read_slurm(const Environment& environment, const GivenTasks& tasks) {
  return flags_of_slurm(environment, tasks.ps);
}

constexpr std::string_view kKeyInHome =
    "where hosts share home folders, paceline key once is enough, else copy the file to each";
constexpr std::string_view kKeyInSecret =
    "on Kubernetes each pod mounts a Secret, and PACELINE_KEY_FILE names its file: "
    "docs/kubernetes.md";

// The sources, the one nearest to the process first, since the processes of one system may start
// another system.
constexpr Source kSources[] = {
    {"tf_config", "TF_CONFIG", nullptr, nullptr, "", nullptr, kKeyInSecret, read_tf_config},
    {"torchrun", "torchrun", "WORLD_SIZE", "RANK", "torchrun --nproc-per-node 1",
     "TORCHELASTIC_RUN_ID",
     "each host has its file in ~/.config/paceline, or where PACELINE_KEY_FILE says, which "
     "torchrun "
     "hands on",
     nullptr, meeting_of_torchrun, "MASTER_ADDR"},
    // Kubeflow passes flags to torchrun in these variables, and starts one process on each node.
    {"pet", "Kubeflow (PET)", "PET_NNODES", "PET_NODE_RANK", "one replica", "PET_NNODES",
     kKeyInSecret, nullptr, meeting_of_pet, "PET_MASTER_ADDR"},
    {"openmpi", "Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun -n 1",
     "OMPI_COMM_WORLD_SIZE", kKeyInHome, nullptr, meeting_of_open_mpi},
    {"mvapich", "MVAPICH", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "mpirun -n 1",
     "MV2_COMM_WORLD_SIZE", kKeyInHome},
    {"pmi", "MPI (PMI)", "PMI_SIZE", "PMI_RANK", "mpirun -n 1", "PMI_SIZE", kKeyInHome, nullptr,
     meeting_of_pmi},
    {"jsrun", "jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "jsrun -n 1",
     "JSM_NAMESPACE_SIZE", kKeyInHome},
    {"flux", "Flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", "flux run -n 1", "FLUX_JOB_SIZE",
     kKeyInHome},
    // $SLURM_NTASKS is also set in a batch script, which runs as one process.
    {"slurm", "Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun -n 1", "SLURM_STEP_NUM_TASKS",
     kKeyInHome, read_slurm},
    {"pmix", "MPI (PMIx)", nullptr, "PMIX_RANK", "prun -n 1", "PMIX_RANK", kKeyInHome},
    // $JOB_COMPLETION_INDEX alone proves nothing: pods of Jobs whose tasks are independent have it,
    // too.
    {"kubernetes", "Kubernetes", nullptr, "JOB_SERVICE", "one completion", "JOB_SERVICE",
     kKeyInSecret, flags_of_kubernetes},
};

const Source& source_named(std::string_view name) {
  return *std::ranges::find(kSources, name, &Source::name);
}

// Reads a number; of a range such as "1:4", the larger number.
std::optional<int> most_of(std::string_view text) {
  text.remove_prefix(text.find(':') == std::string_view::npos ? 0 : text.find(':') + 1);
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Refuses a process that has a number but not the count of processes: if its number is above 0, or
// if it has the address of the others, it is one of several.
void refuse_a_number_without_their_count(const Environment& environment) {
  for (const Source& source : kSources) {
    const std::string_view index = text_in(environment, source.index);
    if (source.processes == nullptr || index.empty() ||
        !text_in(environment, source.processes).empty())
      continue;
    const std::string_view address = text_in(environment, source.address);
    if (address.empty() && index == "0") continue;
    refuse_flags(fmt::format(
        "{}: {} is not set, and {}={}{} says that this is one of several processes; --alone lets "
        "it train without the others",
        source.system, source.processes, source.index, index,
        address.empty() ? "" : fmt::format(", {}={}", source.address, address)));
  }
}

bool is_one_of_several(const LaunchedBy& by) { return by.processes.value_or(2) > 1; }

bool trains(const FlagValues& values) {
  return !values.given("--dry-run") && !values.given("--predict");
}

bool says_which_task(const FlagValues& values) {
  const auto given = [&](const char* flag) { return values.given(flag); };
  return std::ranges::any_of(
      std::initializer_list<const char*>{"--task", "--job-name", "--one-task", "--launched"},
      given);
}

/// The number of processes and the rank of this process, as one source gives them.
struct Saying {
  std::string_view name, system;
  std::optional<int> processes, index;  // empty: the source does not give it
  std::string seen;
};

// With parameter servers or an evaluator only the number of tasks is compared, since such tasks
// have no common order. Wrong addresses are left to the reader of the flag, which refuses them.
std::vector<Saying> sayings_of(const std::vector<GivenFlag>& tf_config) {
  const auto cluster = std::ranges::find(tf_config, "--cluster", &GivenFlag::name);
  const auto task = std::ranges::find(tf_config, "--task", &GivenFlag::name);
  if (cluster == tf_config.end() || task == tf_config.end()) return {};
  ClusterSpec spec;
  try {
    spec = ClusterSpec::parse(cluster->values[0]);
  } catch (const Error&) {
    return {};
  }
  const int tasks = int(spec.ps.size() + spec.workers.size() + spec.evaluators.size());
  const bool ordered = spec.ps.empty() && spec.evaluators.empty();
  return {{"tf_config", "TF_CONFIG", tasks,
           ordered ? std::optional(TaskId::parse(task->values[0]).index) : std::nullopt,
           fmt::format("TF_CONFIG makes this process {} of {} tasks", task->values[0], tasks)}};
}

Saying saying_of(const LaunchedBy& by, const Environment& environment) {
  return {by.name, by.system, by.processes, most_of(text_in(environment, by.index.c_str())),
          by.seen};
}

bool is_own(const Saying& saying, const Environment& environment) {
  return !text_in(environment, source_named(saying.name).own).empty();
}

bool contradicts(const Saying& one, const Saying& other) {
  const auto differ = [](const std::optional<int>& a, const std::optional<int>& b) {
    return a && b && *a != *b;
  };
  return differ(one.processes, other.processes) || differ(one.index, other.index);
}

// srun also sets the variables of PMI. If both agree, Slurm is taken, since it also tells the
// addresses.
LaunchedBy nearest_of(const std::vector<LaunchedBy>& several, const Environment& environment) {
  const auto slurm = std::ranges::find(several, "slurm", &LaunchedBy::name);
  if (several.front().name != "pmi" || slurm == several.end()) return several.front();
  return contradicts(saying_of(several.front(), environment), saying_of(*slurm, environment))
             ? several.front()
             : *slurm;
}

// Returns the system that --launcher names, or the nearest one; nothing if it has started only one
// process.
std::optional<LaunchedBy> launcher_that_counts(const FlagValues& values,
                                               const Environment& environment) {
  std::vector<LaunchedBy> all = launched_by(environment);
  std::erase_if(all, [&](const LaunchedBy& by) { return !may_read(values, by.name); });
  const std::string named = values.text("--launcher");
  if (all.empty() && !named.empty() && named != "none" && named != "tf_config") {
    const Source& source = source_named(named);
    refuse_flags(
        fmt::format("--launcher {}: the environment has no {}, so {} has not started this "
                    "process",
                    named, source.processes ? source.processes : source.index, source.system));
  }
  std::erase_if(all, [](const LaunchedBy& by) { return !is_one_of_several(by); });
  if (all.empty()) return std::nullopt;
  return nearest_of(all, environment);
}

// Returns the launcher, unless flags say which task this process is, or MPI joins the processes.
std::optional<LaunchedBy> launcher_that_joins(const FlagValues& values,
                                              const Environment& environment) {
  if (!trains(values) || says_which_task(values) || values.given("--cluster") ||
      !collectives_kind(values.text("--collectives")).over_links)
    return std::nullopt;
  return launcher_that_counts(values, environment);
}

// Divides the launcher's processes as --ps M asks: M of them become parameter servers.
GivenTasks tasks_among(const FlagValues& values, const LaunchedBy& by, int processes) {
  const int ps = int(values.whole_number("--ps", 0, kMostTasks).value_or(0));
  const int workers = processes - ps;
  if (workers < 1)
    refuse_flags(
        fmt::format("--ps {}: {} has started {} processes ({}), of which at least one "
                    "must be a worker",
                    ps, by.system, processes, by.seen));
  if (const auto given = values.whole_number("--workers", 1, kMostTasks);
      given.value_or(workers) != workers)
    refuse_flags(
        fmt::format("--workers {}: {} has started {} processes of this command ({}), which with "
                    "--ps {} are {} workers; leave out --workers; --alone lets each start its own "
                    "tasks",
                    *given, by.system, processes, by.seen, ps, workers));
  return {ps, workers};
}

// If the launcher does not say how many processes it has started, flags give the numbers.
GivenTasks tasks_of(const FlagValues& values, const LaunchedBy& by) {
  if (by.processes) return tasks_among(values, by, *by.processes);
  check_together(values, "--ps", "--workers", "how many workers the job has");
  const auto workers = values.whole_number("--workers", 1, kMostTasks);
  if (!workers)
    refuse_flags(
        fmt::format("{} ({}) does not say how many tasks the job has: give each of them "
                    "--workers N, and --ps M for parameter servers; --alone lets each "
                    "train by itself",
                    by.system, by.seen));
  return {int(values.whole_number("--ps", 0, kMostTasks).value_or(0)), int(*workers)};
}

}  // namespace

const char* own_environment(const char* name) { return std::getenv(name); }

std::string_view text_in(const Environment& environment, const char* name) {
  const char* const text = name == nullptr ? nullptr : environment(name);
  return text == nullptr ? std::string_view() : text;
}

std::vector<LaunchedBy> launched_by(const Environment& environment) {
  std::vector<LaunchedBy> all;
  for (const Source& source : kSources) {
    const std::string_view processes = text_in(environment, source.processes);
    const std::string_view index = text_in(environment, source.index);
    if (source.processes == nullptr ? index.empty() || !all.empty() : processes.empty()) continue;
    LaunchedBy by{source.name, source.system, most_of(processes), "", source.index, source.one};
    if (!processes.empty()) by.seen = fmt::format("{}={}", source.processes, processes);
    if (!index.empty())
      by.seen += fmt::format("{}{}={}", by.seen.empty() ? "" : ", ", source.index, index);
    all.push_back(std::move(by));
  }
  return all;
}

std::vector<std::string> launcher_names() {
  std::vector<std::string> names;
  for (const Source& source : kSources) {
    if (source.joins()) names.emplace_back(source.name);
  }
  names.emplace_back("none");
  return names;
}

bool may_read(const FlagValues& values, std::string_view name) {
  if (values.given("--alone")) return false;
  return !values.given("--launcher") || values.text("--launcher") == name;
}

std::vector<GivenFlag> flags_of_environment(const FlagValues& values,
                                            const Environment& environment) {
  const auto launcher = values.choice("--launcher", launcher_names());
  if (launcher && *launcher != "none" && values.given("--alone"))
    refuse_flags(
        fmt::format("--alone and --launcher {} cannot both be given: --alone heeds no "
                    "launcher",
                    *launcher));
  if (!may_read(values, "tf_config")) return {};
  const std::string_view tf_config = text_in(environment, "TF_CONFIG");
  if (launcher && tf_config.empty())
    refuse_flags("--launcher tf_config: the environment has no TF_CONFIG");
  return tf_config.empty() ? std::vector<GivenFlag>() : read_tf_config(environment, {});
}

void check_sources_agree(const FlagValues& values, const std::vector<GivenFlag>& given,
                         const Environment& environment) {
  if (!trains(values) || values.given("--alone") || values.given("--launcher") ||
      values.given("--launched"))
    return;
  std::vector<Saying> all = sayings_of(given);
  if (all.empty() && says_which_task(values)) return;
  for (const LaunchedBy& by : launched_by(environment)) {
    if (is_one_of_several(by)) all.push_back(saying_of(by, environment));
  }
  if (all.empty() || is_own(all.front(), environment)) return;
  const auto other =
      std::ranges::find_if(all, [&](const Saying& one) { return contradicts(all.front(), one); });
  if (other == all.end()) return;
  refuse_flags(fmt::format(
      "{} and {} contradict each other: {}, and {}; --launcher {} or --launcher {} says which "
      "counts",
      all.front().system, other->system, all.front().seen, other->seen, all.front().name,
      source_named(other->name).joins() ? other->name : "none"));
}

std::vector<GivenFlag> flags_of_launcher(const FlagValues& values, const Environment& environment) {
  const std::optional<LaunchedBy> by = launcher_that_joins(values, environment);
  if (!by || source_named(by->name).read == nullptr) return {};
  return source_named(by->name).read(environment, tasks_of(values, *by));
}

std::optional<MeetingPlan> meeting_plan(const FlagValues& values, const Environment& environment) {
  const std::optional<LaunchedBy> by = launcher_that_joins(values, environment);
  if (!by || source_named(by->name).meet == nullptr) return std::nullopt;
  MeetingPlan plan = source_named(by->name).meet(environment);
  plan.ps = tasks_among(values, *by, plan.size).ps;
  plan.key_hint = source_named(by->name).key;
  return plan;
}

std::string key_hint(const FlagValues& values) {
  const std::string placed = values.text("--placed");
  const auto source = std::ranges::find_if(kSources, [&](const Source& one) {
    return placed.starts_with(fmt::format("{} (", one.system));
  });
  return source == std::end(kSources) ? "" : std::string(source->key);
}

std::string placed_in_words(const FlagValues& values) {
  if (!values.given("--placed")) return "";
  const ClusterSpec spec = ClusterSpec::parse(values.text("--cluster"));
  return fmt::format("{} says who this process is: {} of {} ps and {} workers, at {}",
                     values.text("--placed"), values.text("--task"), spec.ps.size(),
                     spec.workers.size(), spec.str());
}

void check_one_of_several(const FlagValues& values, const Environment& environment) {
  if (!trains(values) || values.given("--alone") || values.given("--launcher") ||
      says_which_task(values))
    return;
  const std::vector<LaunchedBy> all = launched_by(environment);
  const auto found = std::ranges::find_if(all, is_one_of_several);
  if (found == all.end()) {
    if (all.empty()) refuse_a_number_without_their_count(environment);
    return;
  }
  const bool launches = values.given("--workers") || values.given("--ps");
  throw Error(
      ErrorCode::kUsage,
      fmt::format("{} has started {} of this command ({}), and each would {}. This version does "
                  "not join them by these variables: give each its task (--cluster "
                  "'worker=HOST:PORT,…' --task worker:${}), or start one process ({}){}; --alone "
                  "says that each is to train the whole job by itself",
                  found->system,
                  found->processes ? fmt::format("{} processes", *found->processes) : "processes",
                  found->seen, launches ? "start all tasks of the job" : "train the whole job",
                  found->index, found->one,
                  launches ? "" : ", which may start others: --ps M --workers N"));
}

std::string unused_devices(const Environment& environment) {
  const std::string_view devices = text_in(environment, "CUDA_VISIBLE_DEVICES");
  if (devices.empty() || devices.starts_with('-')) return "";
  return fmt::format(
      "CUDA_VISIBLE_DEVICES={}: this run computes on the CPU; --device cuda uses these GPUs",
      devices);
}

}  // namespace paceline
