#include "cluster/cluster_reader.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

#include "base/philox.h"
#include "paceline/error.h"

namespace paceline {

namespace {

constexpr int kMostTasks = 1024;
constexpr int kMostThreads = 1024;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kUsage, message); }

// What is wrong with the text of a flag is found by who reads it; the flag's name is added here.
template <typename Read>
auto read_flag(const std::string& flag, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", flag, error.what()));
  }
}

void check_together(const FlagValues& values, const std::string& flag, const std::string& other,
                    const std::string& why) {
  if (values.given(flag) && !values.given(other)) {
    refuse(fmt::format("{} needs {}: {}", flag, other, why));
  }
}

void check_apart(const FlagValues& values, const std::string& flag, const std::string& other,
                 const std::string& why) {
  if (values.given(flag) && values.given(other)) {
    refuse(fmt::format("{} and {} cannot both be given: {}", flag, other, why));
  }
}

// Workers on this machine, with servers that are there already.
void read_launcher_of_workers(const FlagValues& values, Cluster& cluster) {
  check_together(values, "--existing-servers", "--ps-hosts", "the addresses of the servers");
  check_apart(values, "--existing-servers", "--ps", "the servers are there, or are started");
  cluster.spec.ps = read_flag("--ps-hosts", [&] {
                      return ClusterSpec::parse("ps=" + values.text("--ps-hosts"));
                    }).ps;
}

void read_launcher(const FlagValues& values, Cluster& cluster) {
  cluster.local_ps = int(values.whole_number("--ps", 1, kMostTasks).value_or(0));
  cluster.local_workers = int(values.whole_number("--workers", 1, kMostTasks).value_or(0));
  if (cluster.local_ps == 0 && cluster.local_workers == 0) return;
  const bool existing = values.given("--existing-servers");
  if (existing) {
    read_launcher_of_workers(values, cluster);
  } else if (cluster.local_ps == 0) {
    refuse(
        fmt::format("--workers {} needs --ps M: workers without a parameter server would need "
                    "all-reduce, which does not exist yet (for example --ps 1 --workers {})",
                    cluster.local_workers, cluster.local_workers));
  }
  if (cluster.local_workers == 0) {
    refuse(
        fmt::format("--ps {} needs --workers N: a parameter server only keeps the variables, "
                    "workers train them (for example --ps {} --workers 2)",
                    cluster.local_ps, cluster.local_ps));
  }
  for (const char* other : {"--cluster", "--ps-hosts", "--worker-hosts", "--task", "--job-name",
                            "--task-index", "--bind"}) {
    if (existing && other == std::string_view("--ps-hosts")) continue;
    check_apart(
        values, existing ? "--workers" : "--ps", other,
        "--ps and --workers start all tasks on this machine, the other flags start one task "
        "of a cluster");
  }
  cluster.existing_servers = existing;
  cluster.role = Cluster::Role::kLauncher;
}

ClusterSpec read_hosts(const FlagValues& values) {
  const std::string ps = "ps=" + values.text("--ps-hosts");
  const std::string workers = "worker=" + values.text("--worker-hosts");
  read_flag("--ps-hosts", [&] { return ClusterSpec::parse(ps); });
  read_flag("--worker-hosts", [&] { return ClusterSpec::parse(workers); });
  return read_flag("--ps-hosts, --worker-hosts",
                   [&] { return ClusterSpec::parse(ps + ";" + workers); });
}

ClusterSpec read_spec(const FlagValues& values) {
  // What the launcher starts has the launcher's own flags too.
  if (!values.given("--launched")) {
    check_apart(values, "--cluster", "--ps-hosts", "both give the addresses");
    check_apart(values, "--cluster", "--worker-hosts", "both give the addresses");
  }
  if (!values.given("--cluster")) {
    check_together(values, "--ps-hosts", "--worker-hosts", "the addresses of the workers");
    check_together(values, "--worker-hosts", "--ps-hosts",
                   "the addresses of the parameter servers");
    return read_hosts(values);
  }
  ClusterSpec spec =
      read_flag("--cluster", [&] { return ClusterSpec::parse(values.text("--cluster")); });
  if (spec.ps.empty() || spec.workers.empty()) {
    refuse_flag("--cluster", values.text("--cluster"),
                "needs at least one ps and one worker: 'ps=host:port,…;worker=host:port,…'");
  }
  return spec;
}

// "evaluator:0", as --task or --job-name say it; nothing when it is another job.
std::optional<int> read_evaluator(const FlagValues& values) {
  const std::string task = values.text("--task");
  if (task.starts_with("evaluator:")) {
    return read_flag("--task", [&] { return TaskId::parse("worker" + task.substr(9)).index; });
  }
  if (values.text("--job-name") != "evaluator") return std::nullopt;
  return int(values.whole_number("--task-index", 0, kMostTasks).value_or(0));
}

TaskId read_named_task(const FlagValues& values) {
  check_apart(values, "--task", "--job-name", "both say which task this process is");
  check_apart(values, "--task", "--task-index", "both say which task this process is");
  check_together(values, "--job-name", "--task-index", "which one of the job this process is");
  check_together(values, "--task-index", "--job-name", "ps or worker");
  if (values.given("--task")) {
    return read_flag("--task", [&] { return TaskId::parse(values.text("--task")); });
  }
  const std::string job = *values.choice("--job-name", {"ps", "worker", "evaluator"});
  return {job == "ps" ? TaskId::Job::kPs : TaskId::Job::kWorker,
          int(*values.whole_number("--task-index", 0, kMostTasks))};
}

const std::vector<std::string>& addresses_of(const Cluster& cluster) {
  return cluster.task.job == TaskId::Job::kPs ? cluster.spec.ps : cluster.spec.workers;
}

void check_task_exists(const Cluster& cluster) {
  const std::size_t count = addresses_of(cluster).size();
  if (std::size_t(cluster.task.index) < count) return;
  const char* job = cluster.task.job == TaskId::Job::kPs ? "ps" : "worker";
  refuse(fmt::format("task {}: the cluster has {} {} task{}, so the index is from 0 to {}",
                     cluster.task.str(), count, job, count == 1 ? "" : "s", count - 1));
}

// A host alone takes the port that the others were told.
std::string read_bind(const FlagValues& values, const Cluster& cluster) {
  if (!values.given("--bind")) return "";
  const std::string& address = addresses_of(cluster)[std::size_t(cluster.task.index)];
  std::string bind = values.text("--bind");
  const bool bracketed = bind.ends_with(']');
  if (bracketed || bind.find(':') == std::string::npos) bind += address.substr(address.rfind(':'));
  read_flag("--bind", [&] { return ClusterSpec::parse("ps=" + bind); });
  return bind;
}

void read_task(const FlagValues& values, Cluster& cluster) {
  const bool spec =
      values.given("--cluster") || values.given("--ps-hosts") || values.given("--worker-hosts");
  const bool task =
      values.given("--task") || values.given("--job-name") || values.given("--task-index");
  if (!spec && !task) {
    check_together(values, "--bind", "--cluster", "alone no task listens");
    check_together(values, "--cluster-id", "--cluster", "alone there is no cluster");
    check_together(values, "--existing-servers", "--workers", "how many workers to start");
    return;
  }
  if (!spec) {
    refuse(
        "which task this process is was given, but not the cluster: add --cluster "
        "'ps=host:port,…;worker=host:port,…' (or --ps-hosts and --worker-hosts)");
  }
  if (!task) {
    const char* const how = values.given("--cluster")    ? "--cluster"
                            : values.given("--ps-hosts") ? "--ps-hosts"
                                                         : "--worker-hosts";
    refuse(fmt::format(
        "the cluster was given ({}), but not which task of it this process is: add --task worker:0 "
        "(or --job-name and --task-index); --ps M --workers N start all tasks on this machine",
        how));
  }
  cluster.spec = read_spec(values);
  if (const std::optional<int> evaluator = read_evaluator(values)) {
    cluster.task.index = *evaluator;
    cluster.role = Cluster::Role::kEvaluator;
    return;
  }
  cluster.task = read_named_task(values);
  check_task_exists(cluster);
  cluster.existing_servers = values.given("--existing-servers");
  if (cluster.existing_servers && cluster.task.job == TaskId::Job::kPs) {
    refuse(
        fmt::format("--existing-servers: the servers are there already, so this process cannot be "
                    "{}; on the host of a server run: paceline server --bind ADDRESS",
                    cluster.task.str()));
  }
  cluster.bind = read_bind(values, cluster);
  cluster.role = Cluster::Role::kTask;
}

// "cpu", "cpu:0", "sim", "sim:N"; nothing when it is none of them.
std::optional<DeviceChoice> device_named(const std::string& text) {
  DeviceChoice device;
  const std::size_t colon = text.find(':');
  device.kind = text.substr(0, colon);
  if (device.kind != "cpu" && device.kind != "sim") return std::nullopt;
  if (colon == std::string::npos) return device;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data() + colon + 1, end, device.index);
  const int most = device.kind == "sim" ? kMostTasks : 0;
  if (status != std::errc() || stop != end || device.index < 0 || device.index > most) {
    return std::nullopt;
  }
  return device;
}

DeviceChoice read_device(const FlagValues& values) {
  const std::string text = values.given("--device") ? values.text("--device") : "cpu";
  const std::optional<DeviceChoice> named = device_named(text);
  if (!named) {
    refuse_flag("--device", text, "must be cpu, sim or sim:N (a simulated device, N from 0)");
  }
  DeviceChoice device = *named;
  const bool sim = device.kind == "sim";
  for (const char* flag : {"--sim-step-ms", "--sim-gflops"}) {
    if (values.given(flag) && !sim) refuse(fmt::format("{} needs --device sim", flag));
  }
  check_apart(values, "--sim-step-ms", "--sim-gflops", "each says how long a step takes");
  device.sim_step_ms = values.positive_number("--sim-step-ms").value_or(0);
  device.sim_gflops = values.positive_number("--sim-gflops").value_or(0);
  if (sim && device.sim_step_ms == 0 && device.sim_gflops == 0) {
    refuse_flag("--device", text, "needs --sim-step-ms MS or --sim-gflops G: how fast it is");
  }
  return device;
}

DType read_precision(const FlagValues& values) {
  if (values.text("--precision") == "float16") {
    refuse_flag("--precision", "float16",
                "its gradients underflow without loss scaling, which is not there yet; bfloat16 is "
                "as fast and needs none");
  }
  const std::optional<std::string> name = values.choice("--precision", {"float32", "bfloat16"});
  return name == "bfloat16" ? DType::kBFloat16 : DType::kFloat32;
}

DType read_wire(const FlagValues& values, const Cluster& cluster) {
  if (values.text("--wire") == "float16") {
    refuse_flag("--wire", "float16",
                "small contributions underflow in it without loss scaling, which is not there yet; "
                "bfloat16 takes as many bytes and needs none");
  }
  const std::optional<std::string> name = values.choice("--wire", {"float32", "bfloat16"});
  if (name && !cluster.distributed()) {
    refuse_flag("--wire", *name, "needs a cluster: alone nothing travels");
  }
  return name == "bfloat16" ? DType::kBFloat16 : DType::kFloat32;
}

void read_strategy(const FlagValues& values, Cluster& cluster) {
  const std::optional<std::string> strategy = values.choice("--strategy", {"async"});
  if (strategy && !cluster.distributed()) {
    refuse("--strategy async needs a cluster: add --ps 1 --workers 2");
  }
  cluster.strategy = cluster.distributed() ? "async" : "local";
}

void read_link(const FlagValues& values, Cluster& cluster) {
  cluster.link = values.choice("--link", {"auto", "inproc", "shm", "tcp"}).value_or("auto");
  if (!cluster.distributed()) return;
  if (cluster.link == "inproc") {
    refuse_flag("--link", "inproc",
                "joins tasks within one process, but each task of this cluster is a process of its "
                "own: auto, shm or tcp");
  }
}

std::string read_cluster_id(const FlagValues& values, const Cluster& cluster) {
  if (values.given("--cluster-id")) return values.text("--cluster-id");
  if (cluster.role != Cluster::Role::kLauncher) {
    // Tasks that are started one by one have only the spec in common.
    return fmt::format("{:016x}", random_key(0, cluster.spec.str()));
  }
  std::uint64_t fresh = 0;
  if (getrandom(&fresh, sizeof fresh, 0) != sizeof fresh) fresh = std::uint64_t(getpid());
  return fmt::format("{:016x}", fresh);
}

void read_timeline(const FlagValues& values, RunOptions& run) {
  if (!values.given("--out")) {
    check_together(values, "--timeline-steps", "--timeline", "the file that shows them");
  }
  run.timeline = values.text("--timeline");
  if (values.given("--timeline")) check_new_file("--timeline", run.timeline);
  if (!values.given("--timeline-steps")) return;
  const std::string text = values.text("--timeline-steps");
  const char* const end = text.data() + text.size();
  const auto [colon, no_first] = std::from_chars(text.data(), end, run.timeline_first);
  const bool colon_there = no_first == std::errc() && colon != end && *colon == ':';
  const auto [last, no_end] = std::from_chars(colon_there ? colon + 1 : end, end, run.timeline_end);
  if (no_end != std::errc() || last != end || run.timeline_first < 0 ||
      run.timeline_end <= run.timeline_first) {
    refuse_flag("--timeline-steps", text,
                "must be the first step and the one after the last, such as 10:30");
  }
}

void read_what_is_left(const FlagValues& values, RunOptions& run) {
  run.report = values.text("--report");
  if (values.given("--report")) check_new_file("--report", run.report);
  run.out = values.text("--out");
  if (values.given("--out") && run.out.empty()) refuse_flag("--out", "''", "must be a folder");
  for (const char* flag :
       {"--resume", "--overwrite", "--save-every", "--keep", "--summary-every"}) {
    check_together(values, flag, "--out", "the folder that they are for");
  }
  check_apart(values, "--resume", "--overwrite", "one keeps the checkpoints, the other deletes");
  run.resume = values.given("--resume");
  run.overwrite = values.given("--overwrite");
  run.save_every = values.interval("--save-every").value_or(run.save_every);
  run.summary_every = values.interval("--summary-every").value_or(run.summary_every);
  run.keep = int(values.whole_number("--keep", 1, INT32_MAX).value_or(run.keep));
  check_together(values, "--init-only", "--init-from", "the checkpoint with the values");
  run.init_from = values.text("--init-from");
  run.init_only = values.all("--init-only");
}

}  // namespace

Cluster read_cluster(const FlagValues& values) {
  Cluster cluster;
  // What the launcher starts has the launcher's own flags too.
  if (!values.given("--launched")) read_launcher(values, cluster);
  if (cluster.role == Cluster::Role::kAlone) read_task(values, cluster);
  read_strategy(values, cluster);
  read_link(values, cluster);
  if (values.given("--show-placement") && !cluster.distributed()) {
    refuse("--show-placement needs a cluster: alone all variables are in this process");
  }
  if (values.given("--torn-free") && !cluster.distributed()) {
    refuse("--torn-free needs a cluster: alone nobody else writes");
  }
  cluster.device = read_device(values);
  const bool own_device = values.text("--device").find(':') == std::string::npos;
  if (cluster.role == Cluster::Role::kLauncher && own_device) cluster.device.index = -1;
  if (cluster.distributed()) cluster.cluster_id = read_cluster_id(values, cluster);
  cluster.precision = read_precision(values);
  cluster.threads = int(values.whole_number("--threads", 1, kMostThreads).value_or(0));
  cluster.join_timeout_s = values.positive_number("--join-timeout").value_or(300);
  if (values.given("--join-timeout") && !cluster.distributed()) {
    refuse("--join-timeout needs a cluster: alone there is nobody to wait for");
  }
  cluster.stop_on_failure = values.choice("--on-failure", {"stop", "continue"}) != "continue";
  if (!values.given("--launched")) {
    check_together(values, "--on-failure", "--ps", "only who starts all tasks can end them");
  }
  // Of the tasks that one command starts, one says it.
  cluster.launched = values.given("--launched");
  cluster.show_placement =
      values.given("--show-placement") && (!cluster.launched || cluster.is_chief());
  cluster.torn_free = values.given("--torn-free");
  cluster.wire = read_wire(values, cluster);
  cluster.error_feedback = values.given("--error-feedback");
  if (cluster.error_feedback && cluster.wire == DType::kFloat32) {
    refuse("--error-feedback needs --wire bfloat16: nothing else is rounded");
  }
  return cluster;
}

RunOptions read_run_options(const FlagValues& values) {
  RunOptions run;
  check_apart(values, "--steps", "--seconds", "each says when the run ends");
  run.steps = values.whole_number("--steps", 1, INT64_MAX);
  run.seconds = values.positive_number("--seconds");
  run.seed = std::uint64_t(values.whole_number("--seed", 0, INT64_MAX).value_or(1));
  read_what_is_left(values, run);
  read_timeline(values, run);
  run.dry_run = values.given("--dry-run");
  run.fused_update = !values.given("--no-fused-update");
  run.quiet = values.given("--quiet");
  run.log_level = values.choice("--log-level", {"debug", "info", "warning", "error"})
                      .value_or(run.quiet ? "warning" : "info");
  run.log_format = values.choice("--log-format", {"text", "json"}).value_or("text");
  return run;
}

}  // namespace paceline
