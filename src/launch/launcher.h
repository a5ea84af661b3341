// Starts every task of a cluster as a process of its own, and sees them through.
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
  /// The time that a task has to end after it was asked to, before it is killed.
  Duration stop_within = std::chrono::seconds(5);
  /// The same after Ctrl-C, when tasks write their reports.
  Duration interrupt_within = std::chrono::seconds(12);
  /// The time that a ps may go on after every worker has ended, and a worker after every ps has.
  Duration outlives_the_other_job = std::chrono::seconds(5);
  /// Workers train with each other, and not with ps tasks alone.
  bool workers_meet = false;
  /// The time for which a task may be stopped (SIGSTOP) when nothing else is waited for.
  Duration stopped_within = std::chrono::seconds(10);
  int out = 1, err = 2;  // descriptors for the tasks' lines
  /// Gets a line for the user; may be empty.
  std::function<void(const std::string&)> say;
};

/// A task that failed by itself, before anybody asked it to end.
struct TaskFailure {
  std::string task;
  ExitStatus status;
  std::string host = {};  // on which it ran; empty: this one
};

struct TaskGroupResult {
  std::optional<TaskFailure> first_failure;      // of a task of the job
  std::optional<TaskFailure> evaluator_failure;  // which ends nothing
  std::vector<std::string> stopped;  // tasks that were killed, since they were stopped for too long
  bool interrupted = false;
};

/// The processes of one job: started together, watched, and ended together. Takes the signals that
/// ask to end (EndingSignals) for itself while it runs: the first is passed on to every task, the
/// second kills them. Single-threaded.
class TaskGroup {
 public:
  explicit TaskGroup(const TaskGroupOptions& options);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Starts it on this host (null), or on another one, which outlives the group. Throws
  /// kUnavailable.
  void start(const TaskCommand& command, const std::string& prefix, TaskStarter* host = nullptr);
  /// A descriptor that is readable once a signal asks to end; for whoever waits before run().
  int ending_fd() const { return signals_.fd(); }
  /// Returns when every task has ended.
  TaskGroupResult run();

 private:
  struct Start {
    TaskCommand command;
    std::string prefix;
    TaskStarter* host;
    TimePoint at;
    int short_lives = 0;  // of its processes, one after the other
  };

  std::unique_ptr<RunningTask> begin(const Start& start) const;
  void wait_for_events();
  void take_signal();
  void take_stops();
  void take_exits();
  void judge(std::size_t task);
  bool start_again(std::size_t task);
  void end_without(const RunningTask& ps);
  /// Called when the last worker has ended: the ps tasks are asked to end now or soon.
  void after_workers();
  void after_ps();
  /// Tells workers that are left when those that they train with have ended well.
  void after_peers();
  /// Called when all others have ended: the evaluator is told so, and may take its time.
  void after_job();
  /// Kills the tasks that are waited for when each of them is stopped and does not go on.
  void after_the_others();
  bool is_waited_for(const RunningTask& child) const;
  /// Asks all to end, workers first, and kills them when they have not in time.
  void ask_all(int signal, Duration within);
  void ask_ps();
  /// Kills all; when it is called again, it waits no longer for those that cannot be reached.
  void kill_all();
  bool any_running() const;
  bool any_running(bool ps) const;
  bool evaluator_running() const;

  TaskGroupOptions options_;
  ThisHost this_host_;
  MemoryKills memory_kills_;
  EndingSignals signals_;
  ChildSignals child_signals_;
  /// By task; its process is the one that was started last.
  std::vector<Start> starts_;
  std::vector<std::unique_ptr<RunningTask>> children_;  // by task
  TaskGroupResult result_;
  TimePoint interrupted_at_;
  bool killed_ = false;
  bool asked_ = false;  // tasks were told to end: their failures are ours
  int signal_ = 0;      // with which, and how long they may take
  Duration within_{};
  bool workers_over_ = false;               // only ps are left
  bool ps_over_ = false;                    // only workers are left
  std::optional<TimePoint> next_;           // when patience ends
  std::optional<TimePoint> stopped_until_;  // when it ends with tasks that are stopped
};

/// The program that is started for each task. Its last arguments say which task it is, or else
/// $PACELINE_TASK does.
struct LaunchProgram {
  std::string path = "/proc/self/exe";
  std::vector<std::string> arguments;  // as the user gave them, without the program's name
  LabOptions lab = {};                 // emulated hosts for the tasks; none: this machine
  bool by_variable = false;            // it may be any command, within which a task is started
  std::vector<std::string> task_flags = {};  // that $PACELINE_TASK has, too
  SshOptions ssh = {};                       // other hosts; only where it is any command
};

/// The place of a task, and the resources that it has there.
struct TaskPlace {
  std::string address = {};             // by which the others reach it
  std::vector<std::string> files = {};  // its report, and its timeline where one is asked for
  int cores = 1;                        // which it shares
  int workers = 1;                      // with so many workers
  std::vector<std::string> flags = {};  // that it is given for that place
  TaskStarter* host = nullptr;          // null: this one
};
/// The places of all tasks, in the order in which they are started.
struct Places {
  std::vector<TaskPlace> tasks = {};
  std::string where;   // "this machine"
  std::string shared;  // lines: "  The tasks share 2 cores."

  std::vector<std::string> addresses() const;
};

/// The places of tasks with these addresses that share this machine.
Places places_here(const Cluster& cluster, const std::vector<std::string>& addresses);

/// Starts all tasks, on this machine, on emulated hosts or over ssh, prints what each of them gets,
/// passes on their output, merges their reports into RunOptions::report, and prints at the end
/// which task failed first and why. Returns the exit status.
int launch(const Cluster& cluster, const RunOptions& run, const LaunchProgram& program,
           const TaskGroupOptions& options);

/// The arguments that make the program this task: appended to the user's own, which they override.
/// The cluster's spec has every task's address.
std::vector<std::string> task_arguments(const Cluster& cluster, const TaskId& task,
                                        const TaskPlace& place);
/// Returns the same arguments in the form of $PACELINE_TASK, which replaces --launched: an object
/// of JSON with the flags, as in a file of flags.
std::string task_variable(const std::vector<std::string>& arguments);
/// task_arguments for the evaluator of a job.
std::vector<std::string> evaluator_arguments();
/// The lines that show the threads and the device of each task.
std::string announcement(const Cluster& cluster, const Places& places);

}  // namespace paceline
