#include "cli/flags/process_reader.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/flag_checks.h"
#include "params/strategy/strategies.h"

namespace paceline {
namespace {

// Reads the workers to start on this machine, for ps tasks that already run.
void read_launcher_of_workers(const FlagValues& values, Cluster& cluster) {
  check_together(values, "--existing-servers", "--ps-hosts", "the addresses of the servers");
  check_apart(values, "--existing-servers", "--ps",
              "servers either run already or are started here");
  cluster.spec.ps = read_flag("--ps-hosts", [&] {
                      return ClusterSpec::parse("ps=" + values.text("--ps-hosts"));
                    }).ps;
}

// True if --ps may be left out: the strategy has no ps tasks, or a prediction finds the best
// number.
bool ps_may_be_chosen(const FlagValues& values) {
  const std::string strategy = values.text("--strategy");
  return is_without_ps(strategy) || strategy == kAutomatic ||
         (strategy.empty() && values.given("--predict"));
}

void read_launcher(const FlagValues& values, Cluster& cluster) {
  cluster.launch.ps = int(values.whole_number("--ps", 0, kMostTasks).value_or(0));
  cluster.launch.workers = int(values.whole_number("--workers", 1, kMostTasks).value_or(0));
  const bool no_ps = values.given("--ps") && cluster.launch.ps == 0;
  if (cluster.launch.ps == 0 && cluster.launch.workers == 0 && !no_ps) return;
  const bool existing = values.given("--existing-servers");
  if (existing) {
    read_launcher_of_workers(values, cluster);
  } else if (cluster.launch.ps == 0 && !no_ps && !ps_may_be_chosen(values)) {
    refuse_flags(
        fmt::format("--workers {} needs --ps M: --ps 1 starts a parameter server, --ps 0 trains "
                    "without one, by all-reduce",
                    cluster.launch.workers));
  }
  if (cluster.launch.workers == 0) {
    if (no_ps) {
      refuse_flags(
          "--ps 0 needs --workers N: the workers that train by all-reduce (for example --workers "
          "2)");
    }
    refuse_flags(
        fmt::format("--ps {} needs --workers N: a parameter server only keeps the variables, "
                    "workers train them (for example --ps {} --workers 2)",
                    cluster.launch.ps, cluster.launch.ps));
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
  cluster.process = Cluster::Process::kLauncher;
}

ClusterSpec read_hosts(const FlagValues& values) {
  if (!values.given("--ps-hosts")) {
    return read_flag("--worker-hosts",
                     [&] { return ClusterSpec::parse("worker=" + values.text("--worker-hosts")); });
  }
  const std::string ps = "ps=" + values.text("--ps-hosts");
  const std::string workers = "worker=" + values.text("--worker-hosts");
  read_flag("--ps-hosts", [&] { return ClusterSpec::parse(ps); });
  read_flag("--worker-hosts", [&] { return ClusterSpec::parse(workers); });
  return read_flag("--ps-hosts, --worker-hosts",
                   [&] { return ClusterSpec::parse(ps + ";" + workers); });
}

ClusterSpec read_spec(const FlagValues& values) {
  // A task that the launcher starts has the launcher's own flags too.
  if (!values.given("--launched")) {
    check_apart(values, "--cluster", "--ps-hosts", "both give the addresses");
    check_apart(values, "--cluster", "--worker-hosts", "both give the addresses");
  }
  if (!values.given("--cluster")) {
    check_together(values, "--ps-hosts", "--worker-hosts", "the addresses of the workers");
    if (!is_without_ps(values.text("--strategy"))) {
      check_together(values, "--worker-hosts", "--ps-hosts",
                     "the addresses of the parameter servers (or --strategy allreduce, which has "
                     "none)");
    }
    return read_hosts(values);
  }
  ClusterSpec spec =
      read_flag("--cluster", [&] { return ClusterSpec::parse(values.text("--cluster")); });
  if (spec.workers.empty()) {
    refuse_flag("--cluster", values.text("--cluster"),
                "needs at least one worker: 'ps=host:port,…;worker=host:port,…', or "
                "'worker=host:port,…' for all-reduce");
  }
  return spec;
}

// Returns the index of "evaluator" or "evaluator:0", as --task or --job-name gives it; nothing for
// another role.
std::optional<int> read_evaluator(const FlagValues& values) {
  const std::string task = values.text("--task");
  if (task == "evaluator") return 0;
  if (task.starts_with("evaluator:")) {
    return read_flag("--task", [&] { return TaskId::parse("worker" + task.substr(9)).index; });
  }
  if (values.text("--job-name") != "evaluator") return std::nullopt;
  return int(values.whole_number("--task-index", 0, kMostTasks).value_or(0));
}

TaskId read_named_task(const FlagValues& values) {
  check_apart(values, "--task", "--job-name", "both say which task this process is");
  check_apart(values, "--task", "--task-index", "both say which task this process is");
  check_together(values, "--job-name", "--task-index", "the index of this process in its job");
  check_together(values, "--task-index", "--job-name", "ps or worker");
  if (values.given("--task")) {
    return read_flag("--task", [&] { return TaskId::parse(values.text("--task")); });
  }
  const std::string role = *values.choice("--job-name", {"ps", "worker", "evaluator"});
  return {role == "ps" ? TaskId::Role::kPs : TaskId::Role::kWorker,
          int(*values.whole_number("--task-index", 0, kMostTasks))};
}

const std::vector<std::string>& addresses_of(const Cluster& cluster) {
  return cluster.task.role == TaskId::Role::kPs ? cluster.spec.ps : cluster.spec.workers;
}

void check_task_exists(const Cluster& cluster) {
  const std::size_t count = addresses_of(cluster).size();
  if (std::size_t(cluster.task.index) < count) return;
  const char* role = cluster.task.role == TaskId::Role::kPs ? "ps" : "worker";
  refuse_flags(fmt::format("task {}: the cluster has {} {} task{}, so the index is from 0 to {}",
                           cluster.task.str(), count, role, count == 1 ? "" : "s", count - 1));
}

// If --bind has a host alone, the port is the one that the other tasks were told.
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
    check_together(values, "--bind", "--cluster", "one process does not listen");
    check_together(values, "--cluster-id", "--cluster", "one process has no cluster");
    check_together(values, "--existing-servers", "--workers", "how many workers to start");
    return;
  }
  if (const std::optional<int> evaluator = read_evaluator(values)) {
    cluster.task.index = *evaluator;
    cluster.process = Cluster::Process::kEvaluator;
    return;
  }
  if (!spec) {
    refuse_flags(
        "which task this process is was given, but not the cluster: add --cluster "
        "'ps=host:port,…;worker=host:port,…' (or --ps-hosts and --worker-hosts)");
  }
  if (!task) {
    const char* const how = values.given("--cluster")    ? "--cluster"
                            : values.given("--ps-hosts") ? "--ps-hosts"
                                                         : "--worker-hosts";
    refuse_flags(fmt::format(
        "the cluster was given ({}), but not which task of it this process is: add --task worker:0 "
        "(or --job-name and --task-index); --ps M --workers N start all tasks on this machine",
        how));
  }
  cluster.spec = read_spec(values);
  cluster.launch.evaluator = cluster.launch.evaluator || !cluster.spec.evaluators.empty();
  cluster.task = read_named_task(values);
  check_task_exists(cluster);
  cluster.existing_servers = values.given("--existing-servers");
  if (cluster.existing_servers && cluster.task.role == TaskId::Role::kPs) {
    refuse_flags(
        fmt::format("--existing-servers: the servers run already, so this process cannot be "
                    "{}; on the host of a server run: paceline server --bind ADDRESS",
                    cluster.task.str()));
  }
  cluster.links.bind = read_bind(values, cluster);
  cluster.process = Cluster::Process::kTask;
}

}  // namespace

void read_process(const FlagValues& values, Cluster& cluster) {
  cluster.launch.launched = values.given("--launched");
  cluster.launch.in_command = cluster.launch.launched && !values.on_command_line("--launched");
  cluster.launch.evaluator = values.given("--evaluator");
  check_together(values, "--evaluator", "--workers",
                 "one process evaluates beside its training; start another one with --task "
                 "evaluator");
  check_together(values, "--evaluator", "--out", "an evaluator reads the checkpoints there");
  // A task that the launcher starts also has the launcher's own flags, and a task that another
  // system has placed, such as Slurm, also has the job's number of parameter servers.
  if (!cluster.launch.launched && !values.given("--placed")) read_launcher(values, cluster);
  if (cluster.process == Cluster::Process::kAlone) read_task(values, cluster);
}

}  // namespace paceline
