// Starts every task of a cluster as its own process, and watches the tasks until all have ended.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/child_process.h"
#include "launch/lab/lab_options.h"
#include "launch/running_task.h"
#include "launch/ssh/ssh_options.h"
#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "run/ending_signals.h"
#include "run/limits.h"
#include "run/report/report.h"

namespace paceline {

struct TaskGroupOptions {
  OnFailure on_failure = OnFailure::kStop;
  /// The time within which a task must end after it was asked to; then it is killed.
  Duration stop_within = std::chrono::seconds(5);
  /// The time within which a task must end after Ctrl-C, when tasks still write their reports.
  Duration interrupt_within = std::chrono::seconds(12);
  /// The time for which a ps may go on after all workers have ended, and a worker after all ps
  /// tasks have.
  Duration outlives_the_other_job = std::chrono::seconds(5);
  /// True if workers train with each other; false if they only talk to ps tasks.
  bool workers_meet = false;
  /// The time after which a stopped task (SIGSTOP) is killed if the launcher waits for stopped
  /// tasks only.
  Duration stopped_within = std::chrono::seconds(10);
  int out = 1, err = 2;  // descriptors for the tasks' lines
  /// Gets lines for the user. May be empty.
  std::function<void(const std::string&)> say;
};

/// A task that failed by itself, before the launcher asked it to end.
struct TaskFailure {
  std::string task;
  ExitStatus status;
  std::string host = {};  // the host on which it ran; empty: this host
};

struct TaskGroupResult {
  std::optional<TaskFailure> first_failure;      // of a task of the job
  std::optional<TaskFailure> evaluator_failure;  // this failure does not end the job
  // Tasks that were killed because they had been stopped for too long.
  std::vector<std::string> stopped;
  bool interrupted = false;
};

/// The processes of one job: they are started together, watched, and ended together. While it runs,
/// the group takes over the signals that ask to end (EndingSignals): the first is passed on to
/// every task, and the second kills them. Single-threaded.
class TaskGroup {
 public:
  explicit TaskGroup(const TaskGroupOptions& options);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Starts the task on this host (`host` is null), or through a starter for another host, which
  /// must outlive the group. Throws kUnavailable.
  void start(const TaskCommand& command, const std::string& prefix, TaskStarter* host = nullptr);
  /// A descriptor that becomes readable once a signal asks to end, for callers that wait before
  /// run().
  int ending_fd() const { return signals_.fd(); }
  /// Returns when every task has ended.
  TaskGroupResult run();

 private:
  struct Start {
    TaskCommand command;
    std::string prefix;
    TaskStarter* host;
    TimePoint at;
    int short_lives = 0;  // how many of its processes in a row ended soon
  };

  std::unique_ptr<RunningTask> begin(const Start& start) const;
  void wait_for_events();
  void take_signal();
  void take_stops();
  void take_exits();
  void judge(std::size_t task);
  bool start_again(std::size_t task);
  void end_without(const RunningTask& ps);
  /// Called when the last worker has ended: asks the ps tasks to end, at once or after a while.
  void after_workers();
  void after_ps();
  /// Tells the remaining workers when the tasks that they train with have ended well.
  void after_peers();
  /// Called when all other tasks have ended: tells the evaluator, which may take its time.
  void after_job();
  /// Kills the tasks that the launcher waits for if all of them are stopped and stay so.
  void after_the_others();
  bool is_waited_for(const RunningTask& child) const;
  /// Asks all tasks to end, workers first, and kills those that have not ended in time.
  void ask_all(int signal, Duration within);
  void ask_ps();
  /// Kills all tasks. When it is called again, the group no longer waits for tasks that cannot be
  /// reached.
  void kill_all();
  bool any_running() const;
  bool any_running(bool ps) const;
  bool evaluator_running() const;

  TaskGroupOptions options_;
  ThisHost this_host_;
  MemoryKills memory_kills_;
  EndingSignals signals_;
  ChildSignals child_signals_;
  /// For each task: the process that was started last.
  std::vector<Start> starts_;
  std::vector<std::unique_ptr<RunningTask>> children_;  // by task
  TaskGroupResult result_;
  TimePoint interrupted_at_;
  bool killed_ = false;
  bool asked_ = false;  // the launcher asked the tasks to end, and so caused their failures
  int signal_ = 0;      // the signal with which it asked, and the time that the tasks may take
  Duration within_{};
  bool workers_over_ = false;      // no worker runs any more
  bool ps_over_ = false;           // no ps runs any more
  std::optional<TimePoint> next_;  // when the tasks are asked to end or, once asked, killed
  // When the wait for tasks that are stopped ends.
  std::optional<TimePoint> stopped_until_;
};

/// The program that is started for each task. It learns which task it is from its last arguments,
/// or from $PACELINE_TASK.
struct LaunchProgram {
  std::string path = "/proc/self/exe";
  // The words that the user gave, without the program's name.
  std::vector<std::string> arguments;
  LabOptions lab = {};  // emulated hosts for the tasks; none: this machine
  // True for a command of any kind, which learns its task from $PACELINE_TASK.
  bool by_variable = false;
  std::vector<std::string> task_flags = {};  // further flags for $PACELINE_TASK
  // Other hosts, which only a command of any kind can have.
  SshOptions ssh = {};
};

/// The place of a task, and the resources that the task has there.
struct TaskPlace {
  std::string address = {};             // by which other tasks reach it
  std::vector<std::string> files = {};  // its report, and its timeline if one is asked for
  int cores = 1;                        // the cores of its host, which the task shares
  int workers = 1;                      // the workers that share these cores
  std::vector<std::string> flags = {};  // flags that the task gets for that place
  TaskStarter* host = nullptr;          // null: the task runs on this host
};
/// The places of all tasks, in the order in which the tasks are started.
struct Places {
  std::vector<TaskPlace> tasks = {};
  std::string where;   // "this machine"
  std::string shared;  // lines: "  The tasks share 2 cores."

  std::vector<std::string> addresses() const;
};

/// Returns the places of tasks with these addresses that share this machine.
Places places_here(const Cluster& cluster, const std::vector<std::string>& addresses);

/// Starts all tasks, on this machine, on emulated hosts or over ssh, and prints what each of them
/// gets. Passes on their output, merges their reports into RunOptions::report, and prints at the
/// end which task failed first and why. Returns the exit status.
int launch(const Cluster& cluster, const RunOptions& run, const LaunchProgram& program,
           const TaskGroupOptions& options);

/// Returns the arguments that tell the program which task it is. They are appended to the user's
/// own arguments, which they override. The cluster's spec must have every task's address.
std::vector<std::string> task_arguments(const Cluster& cluster, const TaskId& task,
                                        const TaskPlace& place);
/// Returns these arguments in the form of $PACELINE_TASK, which replaces --launched: a JSON object
/// with the flags, as in a file of flags.
std::string task_variable(const std::vector<std::string>& arguments);
/// task_arguments for the evaluator of a job.
std::vector<std::string> evaluator_arguments();
/// Returns the lines that show the threads and the device of each task.
std::string announcement(const Cluster& cluster, const Places& places);

}  // namespace paceline
