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
  int code = 0;          // its exit status; meaningless when a signal ended it
  int signal = 0;        // 0: it ended by itself
  std::string why = {};  // "; memory ran out: …", where it is known
  bool lost = false;     // it is not known how or whether it ended: `why` says all
  bool good() const { return code == 0 && signal == 0 && !lost; }
  /// The end in words: "exit status 1", "killed by signal 9 (Killed)", and why.
  std::string str() const;
};

/// A command to start.
struct TaskCommand {
  std::string name;                    // "worker:1"
  std::string program;                 // a path
  std::vector<std::string> arguments;  // after the program's name
  bool is_ps = false;
  bool prefixed_errors = true;  // else lines of its stderr are passed on as they are
  std::vector<std::string> restart_arguments = {};  // when it is started again
  bool is_evaluator = false;
  /// The job's key, which each process gets through a pipe of its own and no other can read: its
  /// last arguments are --key-file /dev/fd/N, or $PACELINE_KEY_FILE says so.
  std::optional<SecretKey> key = {};
  /// JSON for $PACELINE_TASK, where arguments do not say who the process is; empty: they do.
  std::string task_variable = {};
};

/// Takes what a process writes to one of its outputs.
struct TaskOutput {
  std::function<void(std::string_view chunk)> add;  // cut anywhere
  std::function<void()> end;
};

/// Threads: one.
class RunningTask {
 public:
  explicit RunningTask(const TaskCommand& command)
      : name_(command.name), is_ps_(command.is_ps), is_evaluator_(command.is_evaluator) {}
  /// Kills it when it still runs.
  virtual ~RunningTask() = default;
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;

  const std::string& name() const { return name_; }
  bool is_ps() const { return is_ps_; }
  bool is_evaluator() const { return is_evaluator_; }
  /// The host on which it runs; empty for this one.
  virtual std::string host() const { return ""; }
  bool running() const { return !status_; }
  const ExitStatus& status() const { return *status_; }
  /// Adds why it ended so.
  void explain(const std::string& why) { status_->why = why; }
  /// True while a signal such as SIGSTOP stops it, as of the last note_stops().
  bool stopped() const { return stopped_; }
  virtual void note_stops() = 0;
  virtual void send_signal(int signal) = 0;
  /// Ends its standard input, which is how a worker is told that nobody is left whom it could join,
  /// and an evaluator that the job has ended.
  virtual void end_input() = 0;
  /// Waits no longer for a process that cannot be reached.
  virtual void give_up() {}

  /// Adds the descriptors to poll until it has ended; poll passes over −1.
  virtual void watch(std::vector<pollfd>& watched) const = 0;
  /// Passes on the output that it has written so far.
  virtual void forward_output() = 0;
  /// True when reap() would find it ended.
  virtual bool has_ended() const = 0;
  /// Takes the status and the last output.
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
  /// False when the host can no longer be reached.
  virtual bool can_start() const { return true; }
};

}  // namespace paceline
