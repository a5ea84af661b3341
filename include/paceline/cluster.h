// Which tasks a job has, where they are, and which of them this process is.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "paceline/dtype.h"

namespace paceline {

class Interrupt;
class Log;

/// Addresses "host:port" by job name and index.
struct ClusterSpec {
  std::vector<std::string> ps;       // by task index
  std::vector<std::string> workers;  // by task index; the first is the chief
  bool operator==(const ClusterSpec&) const = default;
  /// "ps=a:1,b:1;worker=c:1". Throws kUsage on an unknown job, a bad or a duplicate address.
  static ClusterSpec parse(const std::string& text);
  /// As parse() takes it.
  std::string str() const;
};

/// "ps:0", "worker:2"; worker:0 is the chief.
struct TaskId {
  /// In the words of specs and flags: ps, worker.
  enum class Job : std::uint8_t {
    kPs,      // "ps": keeps variables
    kWorker,  // "worker": trains
  };
  Job job = Job::kWorker;  // ps or worker
  int index = 0;           // from 0, among those of its job
  bool operator==(const TaskId&) const = default;
  static TaskId parse(const std::string& text);  // "worker:1". Throws kUsage.
  /// As parse() takes it.
  std::string str() const;
};

/// What computes in a task, and for `sim` how long that takes.
struct DeviceChoice {
  std::string kind = "cpu";  // "cpu" or "sim"
  int index = 0;  // the launcher's is −1 when each worker gets the device of its own index
  double sim_step_ms = 0;  // milliseconds that any step takes; 0: by sim_gflops
  /// GFLOP/s, by which the time of a step follows from its graph.
  double sim_gflops = 0;
};

/// Everything about a job that is not the model: from flags, complete with defaults.
struct Cluster {
  /// What this process is.
  enum class Role : std::uint8_t {
    kAlone,      // the only one
    kLauncher,   // starts tasks on this machine
    kTask,       // a task of the cluster
    kEvaluator,  // known to training operators, and no part of the cluster; it does nothing yet
  };
  Role role = Role::kAlone;       // of this process
  ClusterSpec spec;               // empty when alone
  TaskId task;                    // worker:0 when alone
  std::string strategy = "";      // empty: "local" alone, "async" with parameter servers
  std::string cluster_id;         // the same for all tasks of a run
  std::string bind;               // listen here instead of the address in the spec
  std::string link = "auto";      // what carries messages: auto, inproc, shm or tcp
  int local_ps = 0;               // that the launcher starts
  int local_workers = 0;          // that the launcher starts
  bool existing_servers = false;  // spec.ps are `paceline server`, which outlive the job
  DeviceChoice device;            // of this task
  int threads = 0;                // 0: all cores
  /// What matrix products are computed in: kFloat32, or kBFloat16 with sums in float32. Variables,
  /// slots, contributions, losses and norms are float32 either way.
  DType precision = DType::kFloat32;
  double join_timeout_s = 300;  // seconds that a task waits for the others at its start
  bool stop_on_failure = true;  // --on-failure stop|continue
  bool show_placement = false;  // this task prints which ps keeps which variables
  bool launched = false;        // a launcher started this task, and sums up what all tasks did
  /// Variables that other workers update are read chunk by chunk of one moment (256 KiB; rows:
  /// those of a batch), which on one host costs a copy; else element by element.
  bool torn_free = false;
  /// What values and contributions travel as between hosts: kFloat32, or kBFloat16, rounded to
  /// nearest even. Tasks that share memory round nothing.
  DType wire = DType::kFloat32;
  /// What rounding leaves out of a worker's contribution is added to its next one.
  bool error_feedback = false;
  /// So many of a worker's steps make one contribution, the mean of theirs, and one global step.
  /// 1: each step contributes.
  int accumulate = 1;
  /// A worker and its ps poll for each other's messages instead of sleeping until they come:
  /// replies come some microseconds earlier, and each keeps a core busy. Set by the program; there
  /// is no flag for it.
  bool spin = false;

  /// Are there other tasks?
  bool distributed() const { return role != Role::kAlone; }
  /// Does this task initialise the variables, and save them?
  bool is_chief() const {
    return role != Role::kEvaluator && task.job == TaskId::Job::kWorker && task.index == 0;
  }
  /// All workers of the job; 1 when alone.
  int workers() const { return spec.workers.empty() ? 1 : int(spec.workers.size()); }
};

/// How often something is done: after so many global steps, or after so many seconds. Neither:
/// never.
struct Interval {
  std::int64_t steps = 0;  // 0: not by steps
  double seconds = 0;      // 0: not by time

  Interval() = default;
  /// Every so many global steps.
  Interval(std::int64_t every_steps) : steps(every_steps) {}
  /// Every so much time.
  template <typename Rep, typename Period>
  Interval(std::chrono::duration<Rep, Period> every)
      : seconds(std::chrono::duration<double>(every).count()) {}
  /// Is it never done?
  bool never() const { return steps <= 0 && seconds <= 0; }
  bool operator==(const Interval&) const = default;
};

/// How long a run goes on and what it leaves behind; flags of every program.
struct RunOptions {
  std::optional<std::int64_t> steps;  // global steps, absolute
  std::optional<double> seconds;      // of training, counted from when every worker is warm
  std::string report;                 // JSON file; empty: none
  Interval summary_every = 20;        // event files for TensorBoard in `out`
  /// A trace for Perfetto of what each task did in some of its own steps (docs/timeline.md); empty:
  /// none.
  std::string timeline;
  std::int64_t timeline_first = 10;  // those steps, counted from 0; end excluded
  std::int64_t timeline_end = 30;    // those steps, counted from 0; end excluded
  bool quiet = false;                // errors only
  /// The folder of what the run leaves: checkpoints/, summaries/TASK/, timeline/, report.json.
  /// Empty: nothing is left.
  std::string out;
  bool resume = false;                             // from the newest whole checkpoint in `out`
  bool overwrite = false;                          // checkpoints in `out` are deleted
  Interval save_every = std::chrono::minutes(10);  // a checkpoint in `out`; also at the end
  int keep = 5;                                    // so many checkpoints, the newest
  std::string init_from;  // a checkpoint whose values the variables begin with; empty: none
  /// Of it only the variables that one of these shell patterns matches; empty: all of the model's.
  std::vector<std::string> init_only;
  std::string resume_command;  // what to type to go on; empty: not known
  /// Alone and without clipping: the rule is applied to parts of a large weight's gradient while
  /// the rest is computed, and no memory holds the gradient as a whole. Changes no bit.
  bool fused_update = true;
  /// A session prints what the job would be, from the flags and its graph alone, and ends the
  /// program (run_program then returns 0).
  bool dry_run = false;
  std::uint64_t seed = 1;  // where random numbers start
  /// Tells of SIGINT and SIGTERM; borrowed, outlives the run. Null: nobody watches.
  const Interrupt* interrupt = nullptr;
  /// Told what the end of a session could not do: save, or write its report or timeline;
  /// run_program then prints it and returns 1. Null: it is only printed.
  std::function<void(const std::string&)> on_failed_end;
  std::string log_level = "info";   // debug, info, warning or error
  std::string log_format = "text";  // or json: an object a line
  /// Where lines about the task go: who joined, what it waits for. Borrowed, outlives the run.
  /// Null: they are printed.
  const Log* log = nullptr;
};

/// The whole main function of a program that trains: reads the cluster and run flags of `argv`
/// (--help lists them), those of a --config file and $TF_CONFIG, and then, by them, launches the
/// tasks on this machine, serves as a ps, or calls `work` as the only process or as a worker.
/// Reports errors and returns the exit status: 0, 1 failed, 2 usage, 130 interrupted.
int run_program(int argc, char** argv,
                const std::function<void(const Cluster&, const RunOptions&)>& work);

}  // namespace paceline
