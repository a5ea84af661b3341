#include "cluster/flags/launch_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include "cluster/flags/flag_checks.h"
#include "cluster/flags/role_reader.h"
#include "cluster/flags/slurm.h"
#include "cluster/flags/tf_config.h"
#include "paceline/cluster.h"
#include "paceline/error.h"
#include "params/collective/collectives_kind.h"

namespace paceline {
namespace {

/// A system by its variables.
struct System {
  std::string_view name;
  const char* processes;  // the variable with the number of processes; null: there is none
  const char* index;      // the variable with the number of this one
  std::string_view one;
};

constexpr System kSystems[] = {
    {"torchrun", "WORLD_SIZE", "RANK", "torchrun --nproc-per-node 1"},
    // Kubeflow gives torchrun its flags so, and starts one process on each node.
    {"Kubeflow (PET)", "PET_NNODES", "PET_NODE_RANK", "one replica"},
    {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun -n 1"},
    {"MVAPICH", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "mpirun -n 1"},
    {"MPI (PMI)", "PMI_SIZE", "PMI_RANK", "mpirun -n 1"},
    {"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "jsrun -n 1"},
    {"Flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", "flux run -n 1"},
    // $SLURM_NTASKS is also set in a batch script, which is one process.
    {"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun -n 1"},
    {"MPI (PMIx)", nullptr, "PMIX_RANK", "prun -n 1"},
};

// A number, or the larger one of a range, "1:4".
std::optional<int> most_of(std::string_view text) {
  text.remove_prefix(text.find(':') == std::string_view::npos ? 0 : text.find(':') + 1);
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
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

}  // namespace

const char* own_environment(const char* name) { return std::getenv(name); }

std::string_view text_in(const Environment& environment, const char* name) {
  const char* const text = name == nullptr ? nullptr : environment(name);
  return text == nullptr ? std::string_view() : text;
}

std::vector<LaunchedBy> launched_by(const Environment& environment) {
  std::vector<LaunchedBy> all;
  for (const System& system : kSystems) {
    const std::string_view processes = text_in(environment, system.processes);
    const std::string_view index = text_in(environment, system.index);
    if (system.processes == nullptr ? index.empty() || !all.empty() : processes.empty()) continue;
    LaunchedBy by{system.name, most_of(processes), "", system.index, system.one};
    if (!processes.empty()) by.seen = fmt::format("{}={}", system.processes, processes);
    if (!index.empty())
      by.seen += fmt::format("{}{}={}", by.seen.empty() ? "" : ", ", system.index, index);
    all.push_back(std::move(by));
  }
  return all;
}

std::vector<GivenFlag> flags_of_environment(const Environment& environment) {
  const std::string_view tf_config = text_in(environment, "TF_CONFIG");
  return tf_config.empty() ? std::vector<GivenFlag>() : flags_of_tf_config(tf_config);
}

std::vector<GivenFlag> flags_of_launcher(const FlagValues& values, const Environment& environment) {
  if (!trains(values) || values.given("--alone") || says_which_task(values) ||
      values.given("--cluster") || !collectives_kind(values.text("--collectives")).over_links)
    return {};
  if (most_of(text_in(environment, "SLURM_STEP_NUM_TASKS")).value_or(1) <= 1) return {};
  // A launcher within a step of Slurm, such as torchrun, is nearer.
  if (launched_by(environment).front().system != "Slurm") return {};
  const int ps = int(values.whole_number("--ps", 0, kMostTasks).value_or(0));
  std::vector<GivenFlag> flags = flags_of_slurm(environment, ps);
  const int workers = *most_of(text_in(environment, "SLURM_STEP_NUM_TASKS")) - ps;
  if (const auto given = values.whole_number("--workers", 1, kMostTasks);
      given.value_or(workers) != workers)
    refuse_flags(
        fmt::format("--workers {}: Slurm has started {} processes of this command "
                    "(SLURM_STEP_NUM_TASKS), which with --ps {} are {} workers; leave out "
                    "--workers",
                    *given, workers + ps, ps, workers));
  return flags;
}

std::string placed_in_words(const FlagValues& values) {
  if (!values.given("--placed")) return "";
  const ClusterSpec spec = ClusterSpec::parse(values.text("--cluster"));
  return fmt::format("{} says who this process is: {} of {} ps and {} workers, at {}",
                     values.text("--placed"), values.text("--task"), spec.ps.size(),
                     spec.workers.size(), spec.str());
}

void check_one_of_several(const FlagValues& values, const Environment& environment) {
  if (!trains(values) || values.given("--alone") || says_which_task(values)) return;
  const std::vector<LaunchedBy> all = launched_by(environment);
  const auto found = std::ranges::find_if(all, is_one_of_several);
  if (found == all.end()) return;
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
      "CUDA_VISIBLE_DEVICES={}: this version computes on the CPU and uses no GPU (--device sim "
      "simulates devices)",
      devices);
}

}  // namespace paceline
