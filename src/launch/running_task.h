// A task of a job while its process runs, on this host or on another one.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/tls/secret_key.h"

namespace paceline {

/// The end of a process.
struct ExitStatus {
  int code = 0;          // its exit status; meaningless if a signal ended it
  int signal = 0;        // 0: it ended by itself
  std::string why = {};  // "; memory ran out: …", if the reason is known
  bool lost = false;     // how or whether it ended is not known: `why` says all
  bool good() const { return code == 0 && signal == 0 && !lost; }
  /// Returns the end in words: "exit status 1", "killed by signal 9 (Killed)", and the reason.
  std::string str() const;
};

/// A command to start.
struct TaskCommand {
  std::string name;                    // "worker:1"
  std::string program;                 // a path
  std::vector<std::string> arguments;  // after the program's name
  bool is_ps = false;
  // If true, lines of its stderr get the task's prefix; else they are passed on unchanged.
  bool prefixed_errors = true;
  std::vector<std::string> restart_arguments = {};  // with which it is started again
  bool is_evaluator = false;
  /// The job's key. Each process gets it through its own pipe, from which no other process can
  /// read; --key-file /dev/fd/N, as its last arguments, or $PACELINE_KEY_FILE names the pipe.
  std::optional<SecretKey> key = {};
  /// JSON for $PACELINE_TASK, for a process whose arguments do not say which task it is; else
  /// empty.
  std::string task_variable = {};
  /// Further variables of its environment, "NAME=value".
  std::vector<std::string> variables = {};
};

/// Receives what a process writes to one of its outputs.
struct TaskOutput {
  std::function<void(std::string_view chunk)> add;  // the chunks are cut anywhere
  std::function<void()> end;
};

/// For one thread.
class RunningTask {
 public:
  explicit RunningTask(const TaskCommand& command)
      : name_(command.name), is_ps_(command.is_ps), is_evaluator_(command.is_evaluator) {}
  /// Kills the process if it still runs.
  virtual ~RunningTask() = default;
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;

  const std::string& name() const { return name_; }
  bool is_ps() const { return is_ps_; }
  bool is_evaluator() const { return is_evaluator_; }
  /// The host on which the task runs; empty for this host.
  virtual std::string host() const { return ""; }
  bool running() const { return !status_; }
  const ExitStatus& status() const { return *status_; }
  /// Adds the reason why the process ended so.
  void explain(const std::string& why) { status_->why = why; }
  /// True if a signal such as SIGSTOP had stopped it at the last note_stops().
  bool stopped() const { return stopped_; }
  virtual void note_stops() = 0;
  virtual void send_signal(int signal) = 0;
  /// Ends its standard input. This tells a worker that nobody is left whom it could join, and an
  /// evaluator that the job has ended.
  virtual void end_input() = 0;
  /// Stops waiting for a process that cannot be reached.
  virtual void give_up() {}

  /// Adds the descriptors to poll until the task has ended; poll ignores −1.
  virtual void watch(std::vector<pollfd>& watched) const = 0;
  /// Passes on the output that the task has written so far.
  virtual void forward_output() = 0;
  /// True once the process has ended, so that reap() may be called.
  virtual bool has_ended() const = 0;
  /// Takes the exit status, and passes on the last output.
  virtual void reap() = 0;

 protected:
  std::optional<ExitStatus> status_;
  bool stopped_ = false;

 private:
  std::string name_;
  bool is_ps_, is_evaluator_;
};

/// Starts tasks on a host.
class TaskStarter {
 public:
  virtual ~TaskStarter() = default;
  /// Throws kUnavailable.
  virtual std::unique_ptr<RunningTask> start(const TaskCommand& command, TaskOutput out,
                                             TaskOutput err) = 0;
  /// Returns false if the host can no longer be reached.
  virtual bool can_start() const { return true; }
};

}  // namespace paceline
