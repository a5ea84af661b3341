#include "cli/flags/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "cli/flags/launch_environment.h"
#include "cli/flags/security_reader.h"
#include "params/strategy/strategies.h"
#include "params/strategy/strategy_fields.h"

namespace paceline {

const char* const kProcessFlags = "Cluster of processes, one command for each task";
const char* const kOutputFlags = "What a run leaves";

namespace {

const char* const kHere = "Cluster on this machine";
const char* const kLab = "Emulated hosts for the cluster on this machine (needs root)";
const char* const kStrategy = "How workers share the work";
const char* const kLinks = "Links between tasks";
const char* const kSecurity = "Security of links";
const char* const kDevice = "Device";
const char* const kRun = "Run";
const char* const kLook = "Look first, and start nothing";
const char* const kPrinted = "What is printed";

const char* flags_of(ClusterKind kind) {
  switch (kind) {
    case ClusterKind::kOneProcess:
      return "alone";
    case ClusterKind::kWithPs:
      return "with --ps";
    case ClusterKind::kWorkersOnly:
      return "with --ps 0";
  }
  return "";
}

std::string strategy_help() {
  std::vector<std::string> meanings;
  for (const std::string& name : strategy_names()) {
    // What the strategy means, for each kind of cluster that has it.
    std::vector<std::string> of_name;
    for (const StrategyKind* const kind : strategies()) {
      if (kind->name != name) continue;
      const bool usual = kind == &default_strategy(kind->cluster);
      of_name.push_back(fmt::format("{} ({}{})", kind->meaning, usual ? "default " : "",
                                    flags_of(kind->cluster)));
    }
    meanings.push_back(fmt::format("{}: {}", name, fmt::join(of_name, ", or ")));
  }
  return fmt::format(
      "The way in which workers share their updates. {}; {}: the way that is expected to be the "
      "fastest, with as many tasks as --ps and --workers say, or any; for a task that is started "
      "by itself, local_sgd if there are workers on several hosts, else the default",
      fmt::join(meanings, "; "), kAutomatic);
}

using Names = std::vector<std::string_view>;

// Flags that describe the same thing. One of the first three lists describes the cluster, and one
// of the last two describes the task.
const Names kLocal = {"--ps",        "--workers",  "--on-failure",  "--lab-hosts",
                      "--lab-place", "--lab-gbps", "--lab-delay-ms"};
const Names kSpec = {"--cluster"};
const Names kHosts = {"--ps-hosts", "--worker-hosts", "--existing-servers"};
const Names kTask = {"--task", "--bind"};
const Names kJob = {"--job-name", "--task-index", "--bind"};

// The flags by which a task proves that it belongs to its job.
const Names kKey = {"--key-file"};
const Names kCertificates = {"--tls-cert", "--tls-key", "--tls-ca"};

struct Displacement {
  Names given, drops;
};

template <typename T>
std::vector<T> joined(std::initializer_list<std::vector<T>> lists) {
  std::vector<T> all;
  for (const std::vector<T>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<Displacement> displacements() {
  return {{{"--ps"}, joined({kSpec, kHosts, kTask, kJob})},
          {{"--workers"}, joined({kSpec, {"--worker-hosts"}, kTask, kJob})},
          {kSpec, joined({kLocal, kHosts})},
          {{"--ps-hosts"}, joined({{"--ps"}, kSpec})},
          {{"--worker-hosts"}, joined({kLocal, kSpec})},
          {{"--task"}, joined({kLocal, {"--job-name", "--task-index"}})},
          {{"--job-name", "--task-index"}, joined({kLocal, {"--task"}})},
          {{"--steps"}, {"--seconds", "--epochs"}},
          {{"--seconds"}, {"--steps", "--epochs"}},
          {{"--epochs"}, {"--steps", "--seconds"}},
          {{"--resume"}, {"--overwrite"}},
          {{"--overwrite"}, {"--resume"}},
          {{"--insecure"}, joined({{"--tls"}, kKey, kCertificates})},
          {{"--tls"}, {"--insecure"}},
          {kKey, joined({{"--insecure"}, kCertificates})},
          {kCertificates, joined({{"--insecure"}, kKey})},
          {{"--sim-step-ms"}, {"--sim-gflops"}},
          {{"--sim-gflops"}, {"--sim-step-ms"}}};
}

std::vector<Flag> local_flags() {
  return {
      {"--ps", "M",
       "Parameter servers to start on this machine, at most 1024; 0: none, the workers train by "
       "all-reduce",
       kHere},
      {"--workers", "N", "Workers to start on this machine, from 1 to 1024; worker i gets device i",
       kHere},
      {"--evaluator", "",
       "Also start a task that evaluates each checkpoint in --out, in place of the chief", kHere},
      {"--on-failure", "stop|continue|restart",
       "When a task fails, end the others (stop), let them go on (continue), or start it again "
       "(restart); when a ps is started again, all go on from the newest checkpoint in --out "
       "(default stop)",
       kHere},
  };
}

std::vector<Flag> lab_flags() {
  return {
      {"--lab-hosts", "N",
       "Start the tasks on N emulated hosts, joined over links of a limited rate; each task gets a "
       "host of its own where there are enough",
       kLab},
      {"--lab-place", "SHAPE",
       "The tasks of each host: 'ps+2/2/2' is a parameter server and 2 workers on the first host, "
       "2 workers on each of two others",
       kLab},
      {"--lab-gbps", "R", "The rate of each host's link in Gbit/s, each way (default 1)", kLab},
      {"--lab-delay-ms", "MS",
       "The delay in milliseconds of each packet that leaves a host (default 0)", kLab},
  };
}

std::vector<Flag> process_flags() {
  return {
      {"--cluster", "SPEC", "The addresses of all tasks: 'ps=a:1,b:1;worker=c:1,d:1'",
       kProcessFlags},
      {"--task", "JOB:I",
       "The task that this process runs: ps:0, worker:1, where worker:0 is the chief, or "
       "evaluator, which needs no cluster but --out (default: from $TF_CONFIG)",
       kProcessFlags},
      {"--ps-hosts", "LIST", "The addresses of the parameter servers, as in TensorFlow: a:1,b:1",
       kProcessFlags},
      {"--worker-hosts", "LIST", "The addresses of the workers: c:1,d:1", kProcessFlags},
      {"--job-name", "ps|worker|evaluator", "The job that this process belongs to", kProcessFlags},
      {"--task-index", "I", "The index of this process in its job, from 0", kProcessFlags},
      {"--bind", "HOST[:PORT]", "Listen here instead of at the task's address in the cluster",
       kProcessFlags},
      {"--cluster-id", "NAME",
       "A name that tells runs with the same addresses apart; give all tasks the same (default: it "
       "follows from the addresses, and a launcher makes a new one)",
       kProcessFlags},
      {"--launcher", fmt::format("{}", fmt::join(launcher_names(), "|")),
       "The system whose variables say which task of which cluster this process is; none: train by "
       "itself, whatever they say (default: those that are found; flags override them)",
       kProcessFlags},
      {"--alone", "", "The same as --launcher none", kProcessFlags},
      {"--existing-servers", "",
       "The --ps-hosts are `paceline server` tasks, which stay when this job ends", kProcessFlags},
  };
}

std::vector<Flag> strategy_flags() {
  std::vector<Flag> flags = {
      {"--strategy", fmt::format("{}|{}", fmt::join(strategy_names(), "|"), kAutomatic),
       strategy_help(), kStrategy},
      {"--sparse", "ps",
       "With --dense allreduce: the same as --strategy hybrid. Variables that are read by rows lie "
       "on parameter servers",
       kStrategy},
      {"--dense", "allreduce",
       "With --sparse ps: the other variables are reduced among the workers", kStrategy},
  };
  for (const StrategyField& field : strategy_fields()) {
    flags.push_back({field.flag, field.argument, field.help, kStrategy});
  }
  flags.push_back(
      {"--show-placement", "", "Print which parameter server keeps which variables", kStrategy});
  flags.push_back(
      {"--shard", "static|dynamic",
       "How workers divide the records of their data: each has a part of its own, or is given the "
       "next block when it needs one, so that a slow worker holds up no epoch (default static)",
       kStrategy});
  return flags;
}

std::vector<Flag> batch_flags() {
  return {
      {"--sync-batch-norm", "",
       "Batch norm with the statistics of the whole batch, of which each worker of an all-reduce, "
       "or each tower, has a part (default: each part's own)",
       kRun},
      {"--on-nan", "stop|skip",
       "The fate of a contribution with NaN or infinity: training ends with an error that names "
       "it, or it is left out and counted, which reads each gradient once more (default stop)",
       kRun},
  };
}

std::vector<Flag> link_flags() {
  return {
      {"--link", "auto|shm|tcp|inproc",
       "The link between tasks; auto takes shm on one host and tcp between hosts, and inproc is "
       "for one process only (default auto)",
       kLinks},
      {"--collectives", "link|mpi",
       "What reduces in an all-reduce: the links, or MPI, for tasks that mpirun has started, as "
       "with "
       "mpirun -n 4 (default link)",
       kLinks},
      {"--join-timeout", "SECONDS",
       "The time that a task waits for the others (default 300; above 0)", kLinks},
      {"--reconnect-timeout", "SECONDS",
       "The time within which a connection that was cut may be made anew; 0 loses it at once "
       "(default 30)",
       kLinks},
      {"--wire", "float32|bfloat16|float16|int8",
       "The type in which contributions travel between hosts, and values, which int8 sends as "
       "bfloat16 (default float32)",
       kLinks},
      {"--top-k", "K",
       "Send the K largest of each 256 numbers of a contribution between hosts (1 to 128); the "
       "others are added to the worker's next one (default: all are sent)",
       kLinks},
      {"--error-feedback", "",
       "Add the rounding error of --wire bfloat16 to the worker's next contribution, as float16, "
       "int8 and --top-k always do",
       kLinks},
  };
}

std::vector<Flag> device_flags() {
  return {
      {"--device", "cpu|cuda[:I]|sim[:I]",
       "The device that computes: cuda is a GPU of NVIDIA's (docs/gpu.md says what hardware has "
       "shown); sim takes time but no core (default cpu)",
       kDevice},
      {"--towers", "N",
       "The devices that train in each task, each on a batch of its own: groups of cores, or "
       "devices from I on; the mean of their gradients is applied (default 1; at most 64)",
       kDevice},
      {"--sim-step-ms", "MS", "The time of a step on sim in milliseconds", kDevice},
      {"--sim-gflops", "G", "The speed of sim in GFLOP/s, instead of --sim-step-ms", kDevice},
      {"--sim-copy-gbps", "G",
       "Give sim memory of its own, to and from which copies run at G GB/s (default: the host's)",
       kDevice},
      {"--sim-straggler", "I:K[:C]",
       "Make worker I slower than the others: each of its steps takes K times as long, as in 1:3, "
       "and its copies to and from the device C times, as in 1:1:4",
       kDevice},
      {"--cuda-check", "",
       "Let cuda wait behind each kernel, which is slow, so that an error names its op", kDevice},
      {"--sim-compute", "", "Let sim also compute, on the cores of this machine", kDevice},
      {"--threads", "T",
       "The number of threads that compute in each task, at most 1024 (default: the tasks share "
       "all cores)",
       kDevice},
      {"--precision", "float32|bfloat16|tf32",
       "The type of products and convolutions; variables stay float32; tf32 needs cuda (default "
       "float32)",
       kDevice},
      {"--deterministic", "",
       "Let cuda use only kernels that give the same bits again, which may be slower", kDevice},
  };
}

// Flags that one part of the program sets for another. $PACELINE_PREDICT carries those of copies,
// as it carries a user's flags, so is_internal() does not count them.
std::vector<Flag> hidden_flags() {
  return {
      {"--launched", "", "", ""},        {"--one-task", "", "", ""},
      {"--placed", "LAUNCHER", "", ""},  {"--copies-by", "NAME", "", ""},
      {"--copy-gate", "NAME/I", "", ""},
  };
}

std::vector<Flag> loop_flags() {
  return {
      {"--steps", "N",
       "End at this global step, which counts the steps of all workers together, and with sync, "
       "hybrid, allreduce and local_sgd the rounds; with async and ssp each worker but one may "
       "make one "
       "more "
       "(default: no end)",
       kRun},
      {"--seconds", "S", "End after so many seconds, counted from when every worker is warm", kRun},
      {"--config", "FILE",
       "Read more flags from a .json or .toml file; the command line overrides the file", kRun},
      {"--accumulate", "K",
       "Contribute the mean of K steps of a worker at once, as if batches were K times as large; "
       "--steps counts contributions (default 1; from 1 on)",
       kRun},
      {"--seed", "S", "The seed of all random numbers (default 1)", kRun},
      {"--no-fused-update", "",
       "In one process, update a weight after its gradient is complete, not while it is computed",
       kRun},
      {"--dry-run", "",
       "Print the cluster, the place of each variable, and what a step computes and sends; start "
       "nothing",
       kLook},
      {"--predict", "",
       "Print how fast each way to distribute would be, and what limits it; start nothing", kLook},
      {"--hosts", "FILE",
       "With --predict: the hosts to predict for, a .toml file (default: this machine)", kLook},
      {"--json", "FILE", "With --predict: write all ways to this JSON file, too", kLook},
      {"--plot", "FILE",
       "With --predict: draw the speed against the workers, as FILE.svg or FILE.png (gnuplot)",
       kLook},
      {"--no-trial", "",
       "Predict without timing a few steps first: from FLOPs and bytes, within a wide interval",
       kLook},
      {"--time-limit", "S", "Predict no more ways after so many seconds (default 30)", kLook},
      {"--roof", "FILE",
       "The roof of this machine for predictions, as paceline roof --out writes it (default: it is "
       "measured); --device cuda is predicted only by such a file with the roof of a GPU",
       kLook},
      {"--quiet", "", "Print only warnings and errors", kPrinted},
      {"--log-level", "debug|info|warning|error",
       "The lowest level that is logged to standard error (default info; with --quiet warning)",
       kPrinted},
      {"--log-format", "text|json", "The format of log lines (default text)", kPrinted},
  };
}

std::vector<Flag> output_flags() {
  return {
      {"--report", "FILE", "Write the measurements of the run to this JSON file", kOutputFlags},
      {"--timeline", "FILE",
       "Write one timeline of all tasks to this JSON file, for ui.perfetto.dev; a task that was "
       "started by itself writes its part, and paceline timeline merges the parts",
       kOutputFlags},
      {"--timeline-steps", "A:B",
       "The steps that the timeline shows: A to B - 1, counted from 0 in each task (default 10:30)",
       kOutputFlags},
      {"--dashboard", "[HOST:]PORT",
       "Serve a live page of the run there while it trains, from the chief (port 0: any that is "
       "free; without HOST only this machine reaches it)",
       kOutputFlags},
      {"--dashboard-token", "FILE",
       "Show the page only to whoever gives the token in this file, which only you may read",
       kOutputFlags},
      {"--dashboard-cert", "FILE",
       "Encrypt the page (https) with this certificate, PEM (default: --tls-cert, if other hosts "
       "reach the page)",
       kOutputFlags},
      {"--dashboard-key", "FILE", "The private key of --dashboard-cert, PEM", kOutputFlags},
      {"--out", "DIR",
       "Write checkpoints/, summaries/, timeline/ and report.json there (default: write nothing)",
       kOutputFlags},
      {"--summary-every", "N|Ns",
       "Write summaries for TensorBoard every N global steps or seconds (default 20)",
       kOutputFlags},
      {"--summary-of", "LIST",
       "Also write summaries of gradients, activations, images: those of them that are listed, "
       "with "
       "commas between (default: none)",
       kOutputFlags},
      {"--resume", "", "Go on from the newest whole checkpoint in --out, or begin if there is none",
       kOutputFlags},
      {"--overwrite", "", "Delete the checkpoints in --out and begin anew", kOutputFlags},
      {"--save-every", "N|Ns", "Save a checkpoint every N global steps or seconds (default 600s)",
       kOutputFlags},
      {"--keep", "K", "Keep the newest K checkpoints (default 5; from 1 on)", kOutputFlags},
      {"--keep-best", "NAME[:min|max]",
       "Also keep the checkpoint with the smallest (or largest) NAME of all that were evaluated, "
       "such as loss/valid; each evaluation then is of a checkpoint",
       kOutputFlags},
      {"--init-from", "FILE",
       "Begin with the values of this checkpoint, safetensors file or run (RUN, or RUN:best)",
       kOutputFlags},
      {"--init-only", "PATTERN",
       "Restrict --init-from to variables that match ('layer*'); may repeat", kOutputFlags, true},
  };
}

}  // namespace

bool displaced(const FlagValues& given, const std::string& flag) {
  if (given.given(flag)) return true;
  const auto is_given = [&](std::string_view name) { return given.given(std::string(name)); };
  return std::ranges::any_of(displacements(), [&](const Displacement& one) {
    return std::ranges::any_of(one.given, is_given) &&
           std::ranges::find(one.drops, flag) != one.drops.end();
  });
}

std::vector<Flag> cluster_flags() {
  return joined({local_flags(), lab_flags(), process_flags(), strategy_flags(), batch_flags(),
                 link_flags(), security_flags(kSecurity), device_flags(), hidden_flags()});
}

std::vector<Flag> run_flags() { return joined({loop_flags(), output_flags()}); }

std::string cluster_examples(const std::string& command) {
  return fmt::format(R"(Examples:
  {0} --steps 1000
      in one process
  {0} --steps 1000 --ps 1 --workers 2
      one parameter server and two workers on this machine
  {0} --steps 1000 --ps 0 --workers 2
      two workers on this machine, by all-reduce
  {0} --steps 1000 --ps-hosts a:2222 --worker-hosts b:2222,c:2222 --job-name ps --task-index 0
  {0} --steps 1000 --ps-hosts a:2222 --worker-hosts b:2222,c:2222 --job-name worker --task-index 1
      on host a, and on host c: one command for each task, in any order
  {0} --steps 1000 --cluster 'ps=a:2222;worker=b:2222,c:2222' --task worker:1
      the same as the line before

Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.)",
                     command);
}

}  // namespace paceline
