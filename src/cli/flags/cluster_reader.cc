#include "cli/flags/cluster_reader.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/cores.h"
#include "base/philox.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/process_reader.h"
#include "cli/flags/security_reader.h"
#include "cli/flags/straggler.h"
#include "kernels/device_kind.h"
#include "net/link_kind.h"
#include "params/collective/collectives_kind.h"
#include "params/strategy/strategies.h"
#include "params/strategy/strategy_fields.h"
#include "params/wire/travelling_type.h"
#include "run/towers.h"

namespace paceline {
namespace {

constexpr int kMostThreads = 1024;
constexpr std::size_t kMostIdBytes = 1 << 15;
constexpr int kMostAccumulated = 1 << 20;

// A manifest whose cluster has shrunk to one task (by $TF_CONFIG) may keep the flags of a cluster.
bool is_shrunk(const FlagValues& values, const Cluster& cluster) {
  return values.given("--one-task") && !cluster.distributed();
}

void check_for_cluster(const FlagValues& values, const Cluster& cluster, const std::string& flag,
                       const std::string& why) {
  if (!values.given(flag) || cluster.distributed() || is_shrunk(values, cluster)) return;
  refuse_flags(fmt::format("{} needs a cluster: {}", flag, why));
}

int workers_of(const Cluster& cluster) {
  return cluster.launch.workers > 0 ? cluster.launch.workers : int(cluster.spec.workers.size());
}

// Makes the device of this task slower if the task is the straggler.
void read_straggler(const FlagValues& values, const Cluster& cluster, DeviceChoice& device) {
  if (!values.given("--sim-straggler") || is_shrunk(values, cluster)) return;
  check_for_cluster(values, cluster, "--sim-straggler", "one process has no other workers");
  const std::string text = values.text("--sim-straggler");
  const std::optional<Straggler> named = straggler_named(text);
  if (!named) {
    refuse_flag("--sim-straggler", text,
                "must be a worker and how many times as long its steps take, from 1 to 1e6, as in "
                "1:3, and how many times as long its copies, as in 1:3:2");
  }
  if (named->copy_times > 1 && device.sim_copy_gbps == 0) {
    refuse_flag("--sim-straggler", text,
                "slower copies need --sim-copy-gbps G: how fast those of the others are");
  }
  const int workers = workers_of(cluster);
  if (named->worker >= workers) {
    refuse_flag("--sim-straggler", text,
                fmt::format("the last of the {} worker{} is worker {}", workers,
                            workers == 1 ? "" : "s", workers - 1));
  }
  if (cluster.process != Cluster::Process::kTask ||
      cluster.task != TaskId{TaskId::Role::kWorker, named->worker}) {
    return;
  }
  device.sim_step_ms *= named->times;
  device.sim_gflops /= named->times;
  device.sim_copy_gbps /= named->copy_times;
}

bool names_a_gpu(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(':'));
  return std::ranges::count(
             std::initializer_list<std::string_view>{"gpu", "GPU", "CUDA", "nvidia", "rocm", "hip",
                                                     "mps", "xla", "tpu", "TPU"},
             kind) > 0 ||
         text.starts_with("/gpu") || text.starts_with("/device:GPU");
}

DeviceChoice read_device(const FlagValues& values, const Cluster& cluster) {
  const std::string text = values.given("--device") ? values.text("--device") : "cpu";
  const std::optional<DeviceChoice> named = device_named(text);
  if (!named && names_a_gpu(text)) {
    refuse_flag("--device", text,
                "must be cpu, cuda or cuda:N (a GPU of NVIDIA's): --device sim --sim-step-ms MS "
                "simulates another device whose step takes MS milliseconds, and paceline predict "
                "says how fast a cluster of such devices would be");
  }
  if (!named) {
    refuse_flag(
        "--device", text,
        "must be cpu, cuda or cuda:N (a GPU of NVIDIA's, N from 0), sim or sim:N (a simulated "
        "device)");
  }
  DeviceChoice device = *named;
  const bool sim = device_kind(device.kind).is_simulated;
  for (const char* flag :
       {"--sim-step-ms", "--sim-gflops", "--sim-copy-gbps", "--sim-compute", "--sim-straggler"}) {
    if (values.given(flag) && !sim) refuse_flags(fmt::format("{} needs --device sim", flag));
  }
  const bool cuda = device_kind(device.kind).needs_hardware;
  for (const char* flag : {"--cuda-check", "--deterministic"}) {
    if (values.given(flag) && !cuda) refuse_flags(fmt::format("{} needs --device cuda", flag));
  }
  device.cuda_check = values.given("--cuda-check");
  device.cuda_deterministic = values.given("--deterministic");
  device.cuda_tf32 = values.text("--precision") == "tf32";
  if (device.cuda_tf32 && !cuda) {
    refuse_flag("--precision", "tf32",
                "needs --device cuda, whose tensor cores multiply in it; others take float32 or "
                "bfloat16");
  }
  device.sim_compute = values.given("--sim-compute");
  // A launcher that starts a simulated task again adds --resume; the task then resumes what its own
  // job has saved.
  for (const char* flag : {"--resume", "--init-from"}) {
    if (sim && !cluster.launch.launched && !device.sim_compute && values.given(flag)) {
      refuse_flags(
          fmt::format("{} cannot be given with --device sim, which computes nothing without "
                      "--sim-compute: its checkpoints would replace trained ones",
                      flag));
    }
  }
  check_apart(values, "--sim-step-ms", "--sim-gflops", "each says how long a step takes");
  device.sim_step_ms = values.positive_number("--sim-step-ms").value_or(0);
  device.sim_gflops = values.positive_number("--sim-gflops").value_or(0);
  device.sim_copy_gbps = values.positive_number("--sim-copy-gbps").value_or(0);
  read_straggler(values, cluster, device);
  if (sim && device.sim_step_ms == 0 && device.sim_gflops == 0) {
    refuse_flag("--device", text, "needs --sim-step-ms MS or --sim-gflops G: how fast it is");
  }
  return device;
}

// True for a ps, which has no device but may be given the flags of the workers.
bool serves(const Cluster& cluster) {
  return cluster.process == Cluster::Process::kTask && cluster.task.role == TaskId::Role::kPs;
}

OnFailure read_on_failure(const FlagValues& values) {
  const auto choice = values.choice("--on-failure", {"stop", "continue", "restart"});
  if (choice == "restart") return OnFailure::kRestart;
  return choice == "continue" ? OnFailure::kContinue : OnFailure::kStop;
}

DType read_precision(const FlagValues& values) {
  if (values.text("--precision") == "float16") {
    refuse_flag(
        "--precision", "float16",
        "its gradients underflow without loss scaling, which does not exist yet; bfloat16 is "
        "as fast and needs none");
  }
  const std::optional<std::string> name =
      values.choice("--precision", {"float32", "bfloat16", "tf32"});
  return name == "bfloat16" ? DType::kBFloat16 : DType::kFloat32;
}

DType read_wire(const FlagValues& values, const Cluster& cluster) {
  std::vector<std::string> names;
  names.reserve(kTravellingTypes.size());
  for (const TravellingType& each : kTravellingTypes) names.emplace_back(each.name);
  const std::optional<std::string> name = values.choice("--wire", names);
  check_for_cluster(values, cluster, "--wire", "one process sends nothing");
  for (const TravellingType& each : kTravellingTypes) {
    if (each.name == name) return each.type;
  }
  return DType::kFloat32;
}

int read_top_k(const FlagValues& values, const Cluster& cluster) {
  const auto kept = values.whole_number("--top-k", 1, kMostKept);
  check_for_cluster(values, cluster, "--top-k", "one process sends nothing");
  if (kept && cluster.links.wire == DType::kUInt8) {
    refuse_flags("--top-k and --wire int8 cannot both be given: a scale is for all of 256 numbers");
  }
  return int(kept.value_or(0));
}

// Error feedback preserves contributions that would otherwise be lost: those smaller than the least
// float16 or than a step of int8, and those that are never among the largest.
bool read_error_feedback(const FlagValues& values, const Cluster& cluster) {
  const bool given = values.given("--error-feedback");
  if (given && cluster.links.wire == DType::kFloat32 && cluster.links.top_k == 0) {
    refuse_flags(
        "--error-feedback needs --wire bfloat16, float16 or int8, or --top-k: nothing else is "
        "rounded or left out");
  }
  return given || cluster.links.wire == DType::kFloat16 || cluster.links.wire == DType::kUInt8 ||
         cluster.links.top_k > 0;
}

/// Reads an option of a strategy according to the kind of its value.
struct OptionReader {
  const FlagValues& values;
  const char* flag;
  Strategy& strategy;

  void operator()(const WholeOption& option) const {
    strategy.*option.value = int(*values.whole_number(flag, option.least, option.most));
  }
  void operator()(const RateOption& option) const {
    strategy.*option.value =
        float(option.below_one ? *values.number_below_one(flag) : *values.positive_number(flag));
  }
  void operator()(const WordOption& option) const {
    const std::string word = *values.choice(flag, option.words);
    option.set(strategy, int(std::ranges::find(option.words, word) - option.words.begin()));
  }
};

void read_options(const FlagValues& values, Cluster& cluster) {
  for (const StrategyField& field : strategy_fields()) {
    if (values.given(field.flag)) {
      std::visit(OptionReader{values, field.flag, cluster.strategy}, field.value);
    }
  }
  const StrategyKind& kind = strategy_kind(cluster);
  const bool without_rounds = kind.rounds && !kind.in_rounds(cluster.strategy);
  if (without_rounds && !kind.has_ps()) {
    refuse_flags("--outer async needs --ps: an all-reduce has nothing that applies single changes");
  }
  for (const StrategyField& field : strategy_fields()) {
    if (!values.given(field.flag) || field.is_of(kind, cluster.strategy)) continue;
    // The flag may be an option of this strategy, but only with rounds.
    if (without_rounds && field.is_of(kind, Strategy())) {
      refuse_flags(
          fmt::format("{} does not go with --outer async, which has no rounds", field.flag));
    }
    refuse_flags(fmt::format("{} {}", field.flag, field.needs));
  }
  const int workers = workers_of(cluster), replicas = cluster.strategy.replicas;
  if (workers > 0 && replicas > workers) {
    refuse_flags(fmt::format("--replicas-to-aggregate {} is more than the {} workers can give",
                             replicas, workers));
  }
}

void check_strategy_fits(const std::string& name, const Cluster& cluster) {
  const ClusterKind needed = strategy_named(name, kind_of(cluster)).cluster;
  if (needed == kind_of(cluster)) return;
  if (needed == ClusterKind::kOneProcess) {
    refuse_flags(fmt::format("--strategy {} is for one process, and not for a cluster", name));
  }
  if (needed == ClusterKind::kWorkersOnly) {
    refuse_flags(fmt::format("--strategy {} needs a cluster without parameter servers: {}", name,
                             cluster.process == Cluster::Process::kTask
                                 ? "leave them out of the cluster"
                                 : "give --ps 0 --workers 2"));
  }
  if (kind_of(cluster) == ClusterKind::kOneProcess) {
    refuse_flags(fmt::format("--strategy {} needs a cluster: add --ps 1 --workers 2", name));
  }
  refuse_flags(fmt::format(
      "--strategy {} needs parameter servers, and this cluster has none: {}", name,
      cluster.process == Cluster::Process::kLauncher ? "give --ps 1 instead of --ps 0"
                                                     : "name them in the cluster, too"));
}

// Refuses flags that are about parameter servers if the job has none.
void check_for_ps(const FlagValues& values, const Cluster& cluster) {
  if (kind_of(cluster) != ClusterKind::kWorkersOnly) return;
  for (const char* flag :
       {"--wire", "--top-k", "--error-feedback", "--show-placement", "--reconnect-timeout"}) {
    if (!values.given(flag)) continue;
    refuse_flags(fmt::format(
        "{} needs parameter servers: in an all-reduce each worker has all values itself", flag));
  }
}

// "--sparse ps --dense allreduce" asks for the strategy that splits variables.
void read_parts(const FlagValues& values, std::optional<std::string>& strategy) {
  check_together(values, "--sparse", "--dense", "--dense allreduce");
  check_together(values, "--dense", "--sparse", "--sparse ps");
  values.choice("--sparse", {"ps"});
  values.choice("--dense", {"allreduce"});
  if (!values.given("--sparse")) return;
  const StrategyKind& splits =
      **std::ranges::find_if(strategies(), &StrategyKind::splits_variables);
  if (strategy && *strategy != splits.name) {
    refuse_flags(fmt::format("--sparse ps --dense allreduce is --strategy {}, and not {}",
                             splits.name, *strategy));
  }
  strategy = splits.name;
}

std::optional<std::string> read_strategy_name(const FlagValues& values, const Cluster& cluster) {
  const std::string given = values.text("--strategy");
  if (is_old_strategy_name(given)) return std::string(find_strategy(given, kind_of(cluster))->name);
  std::vector<std::string> names = strategy_names();
  names.emplace_back(kAutomatic);
  return values.choice("--strategy", names);
}

void read_strategy(const FlagValues& values, Cluster& cluster) {
  if (is_shrunk(values, cluster)) {
    cluster.strategy.name = default_strategy(ClusterKind::kOneProcess).name;
    return;
  }
  std::optional<std::string> name = read_strategy_name(values, cluster);
  read_parts(values, name);
  if (name && *name != kAutomatic) check_strategy_fits(*name, cluster);
  cluster.strategy.name = name.value_or("");
  cluster.strategy.name = strategy_name(cluster);
  read_options(values, cluster);
}

void read_link(const FlagValues& values, Cluster& cluster) {
  cluster.links.kind = values.choice("--link", link_names()).value_or(cluster.links.kind);
  const LinkKind& kind = link_kind(cluster.links.kind);
  if (kind.within_a_process && cluster.distributed()) {
    refuse_flag("--link", cluster.links.kind,
                "joins tasks within one process, but each task of this cluster is a process of its "
                "own: auto, shm or tcp");
  }
  if (kind.needs_one_host() && cluster.links.security.tls == Tls::kAlways) {
    refuse_flag("--link", cluster.links.kind,
                "shares memory, and --tls on shares none: auto or tcp");
  }
}

void read_collectives(const FlagValues& values, Cluster& cluster) {
  cluster.links.collectives =
      values.choice("--collectives", collectives_names()).value_or(cluster.links.collectives);
  if (collectives_kind(cluster.links.collectives).over_links) return;
  if (cluster.process != Cluster::Process::kTask || values.on_command_line("--task")) {
    refuse_flag("--collectives", cluster.links.collectives,
                "needs tasks that mpirun starts, without --ps, --workers, --cluster and --task: "
                "mpirun -n 4 paceline train mlp --collectives mpi");
  }
  if (kind_of(cluster) != ClusterKind::kWorkersOnly) {
    refuse_flag("--collectives", cluster.links.collectives,
                "is for all-reduce, which has no parameter servers");
  }
}

std::string read_cluster_id(const FlagValues& values, const Cluster& cluster) {
  if (values.given("--cluster-id")) return values.text("--cluster-id");
  if (cluster.process != Cluster::Process::kLauncher) {
    // Tasks that are started one by one have only the spec in common, so the spec is the job's id,
    // and a refusal can name the addresses that differ. A long spec does not fit into a message.
    const std::string spec = cluster.spec.str();
    return spec.size() <= kMostIdBytes ? spec : fmt::format("{:016x}", random_key(0, spec));
  }
  std::uint64_t fresh = 0;
  if (getrandom(&fresh, sizeof fresh, 0) != sizeof fresh) fresh = std::uint64_t(getpid());
  return fmt::format("{:016x}", fresh);
}

void read_sync_batch_norm(const FlagValues& values, Cluster& cluster) {
  if (!values.given("--sync-batch-norm") || is_shrunk(values, cluster)) return;
  const std::string why_not = why_no_sync_batch_norm(cluster);
  if (!why_not.empty()) refuse_flags("--sync-batch-norm " + why_not);
  cluster.train.sync_batch_norm = true;
}

}  // namespace

std::string old_name_hint(const FlagValues& values, const Cluster& cluster) {
  const std::string given = values.text("--strategy");
  if (!is_old_strategy_name(given)) return "";
  return fmt::format("--strategy {} is now called {}: the next version reads the new name only",
                     given, strategy_kind(cluster).name);
}

Cluster read_cluster(const FlagValues& values) {
  Cluster cluster;
  read_process(values, cluster);
  cluster.links.join_timeout_s = values.positive_number("--join-timeout").value_or(300);
  // The other flags concern only the job's training tasks, and may be incomplete for an evaluator.
  if (cluster.process == Cluster::Process::kEvaluator) return cluster;
  read_strategy(values, cluster);
  if (values.choice("--on-nan", {"stop", "skip"}) == "skip") cluster.train.on_nan = OnNan::kSkip;
  cluster.train.accumulate =
      int(values.whole_number("--accumulate", 1, kMostAccumulated).value_or(1));
  if (values.choice("--shard", {"static", "dynamic"}) == "dynamic") {
    cluster.train.sharding = Sharding::kDynamic;
  }
  if (const StrategyKind& kind = strategy_kind(cluster); kind.why_not_cluster != nullptr) {
    const std::string why_not = kind.why_not_cluster(cluster, workers_of(cluster));
    if (!why_not.empty()) refuse_flags(fmt::format("--strategy {} {}", kind.name, why_not));
  }
  check_for_ps(values, cluster);
  cluster.links.security = read_security(values);
  read_link(values, cluster);
  read_collectives(values, cluster);
  check_for_cluster(values, cluster, "--show-placement", "one process keeps all variables itself");
  cluster.device = read_device(values, cluster);
  const bool own_device = values.text("--device").find(':') == std::string::npos;
  if (cluster.process == Cluster::Process::kLauncher && own_device) cluster.device.index = -1;
  if (cluster.distributed()) cluster.cluster_id = read_cluster_id(values, cluster);
  cluster.train.precision = read_precision(values);
  cluster.threads = int(values.whole_number("--threads", 1, kMostThreads).value_or(0));
  cluster.towers = int(values.whole_number("--towers", 1, kMostTowers).value_or(1));
  if (!serves(cluster)) check_towers(cluster, usable_cores());
  read_sync_batch_norm(values, cluster);
  check_for_cluster(values, cluster, "--join-timeout", "one process waits for nobody");
  cluster.links.reconnect_timeout_s = values.number_from_zero("--reconnect-timeout").value_or(30);
  check_for_cluster(values, cluster, "--reconnect-timeout", "one process has no connections");
  cluster.launch.on_failure = read_on_failure(values);
  if (!values.given("--launched")) {
    check_together(values, "--on-failure", "--ps",
                   "only the process that starts all tasks can end them");
  }
  // If a launcher starts the tasks, only the chief prints the placement.
  cluster.show_placement =
      values.given("--show-placement") && (!cluster.launch.launched || cluster.is_chief());
  cluster.links.wire = read_wire(values, cluster);
  cluster.links.top_k = read_top_k(values, cluster);
  cluster.links.error_feedback = read_error_feedback(values, cluster);
  return cluster;
}

std::optional<DeviceChoice> device_named(const std::string& text) {
  DeviceChoice device;
  const std::size_t colon = text.find(':');
  device.kind = text.substr(0, colon);
  const DeviceKind* const kind = find_device_kind(device.kind);
  if (kind == nullptr || kind->is_oracle) return std::nullopt;
  if (colon == std::string::npos) return device;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data() + colon + 1, end, device.index);
  const int most = kind->is_numbered ? kMostTasks : 0;
  if (status != std::errc() || stop != end || device.index < 0 || device.index > most) {
    return std::nullopt;
  }
  return device;
}

}  // namespace paceline
