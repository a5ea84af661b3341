// One started task: its process, and the pipes that bring its output.
#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/line_prefixer.h"
#include "net/poll/file_descriptor.h"
#include "net/tls/secret_key.h"

namespace paceline {

/// The end of a process.
struct ExitStatus {
  int code = 0;          // its exit status; meaningless when a signal ended it
  int signal = 0;        // 0: it ended by itself
  std::string why = {};  // "; memory ran out: …", where it is known
  bool good() const { return code == 0 && signal == 0; }
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

/// Makes a descriptor readable when a child of this process was stopped, or went on. One per
/// process, made before any other thread and any child is started.
class ChildSignals {
 public:
  /// Throws kUnavailable.
  ChildSignals();
  ~ChildSignals();
  ChildSignals(const ChildSignals&) = delete;
  ChildSignals& operator=(const ChildSignals&) = delete;

  int fd() const { return fd_.get(); }
  void drain() const;

 private:
  sigset_t before_;
  FileDescriptor fd_;
};

/// Starts the process in a process group of its own (a terminal's Ctrl-C reaches only the launcher,
/// which passes it on); it is killed when the thread that made this object ends. Threads: one.
class ChildProcess {
 public:
  /// Its lines go to `out` and `err`, behind `prefix`. Throws kUnavailable.
  ChildProcess(const TaskCommand& command, const std::string& prefix, int out, int err);
  /// Kills it when it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  const std::string& name() const { return name_; }
  bool is_ps() const { return is_ps_; }
  bool is_evaluator() const { return is_evaluator_; }
  bool running() const { return !status_; }
  const ExitStatus& status() const { return *status_; }
  /// Adds why it ended so.
  void explain(const std::string& why) { status_->why = why; }
  /// True while a signal such as SIGSTOP stops it, as of the last note_stops().
  bool stopped() const { return stopped_; }
  void note_stops();
  void send_signal(int signal);
  /// Ends its standard input, which is how a worker is told that nobody is left whom it could join,
  /// and an evaluator that the job has ended.
  void end_input() { in_ = FileDescriptor(); }

  /// The descriptors to poll for reading. `out` and `err` are −1 once they are closed.
  int exit_fd() const { return exit_fd_; }
  int out_fd() const { return out_.fd; }
  int err_fd() const { return err_.fd; }
  /// Passes on the output that it has written so far.
  void forward_output();
  /// Takes the status and the last output. To be called after exit_fd became readable.
  void reap();

 private:
  struct Stream {
    int fd;
    LinePrefixer lines;
  };
  static void forward(Stream& stream);
  static void end(Stream& stream);

  std::string name_;
  bool is_ps_, is_evaluator_;
  int pid_ = -1;
  int exit_fd_ = -1;
  FileDescriptor in_;
  Stream out_, err_;
  std::optional<ExitStatus> status_;
  bool stopped_ = false;
};

}  // namespace paceline
