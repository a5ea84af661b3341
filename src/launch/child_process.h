// A task that was started on this host: its process, and the pipes through which its output
// arrives.
#pragma once

#include <signal.h>

#include <memory>
#include <utility>
#include <vector>

#include "launch/running_task.h"
#include "net/poll/file_descriptor.h"

namespace paceline {

/// Makes a descriptor readable when a child of this process was stopped, was continued or has
/// ended. Make one object per process, before any other thread or child is started.
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

/// Starts the process in its own process group, so that a terminal's Ctrl-C reaches only the
/// launcher, which passes it on. The process is killed when the thread that made this object ends.
class ChildProcess : public RunningTask {
 public:
  /// Throws kUnavailable.
  ChildProcess(const TaskCommand& command, TaskOutput out, TaskOutput err);
  ~ChildProcess() override;

  void note_stops() override;
  void send_signal(int signal) override;
  void end_input() override { in_ = FileDescriptor(); }
  /// The pipe to the process's standard input; −1 once that input was ended.
  int in_fd() const { return in_.get(); }
  void watch(std::vector<pollfd>& watched) const override;
  /// Adds only the descriptors of its outputs.
  void watch_outputs(std::vector<pollfd>& watched) const;
  void forward_output() override;
  bool has_ended() const override;
  /// True when all processes that hold its outputs have closed them: the process itself and those
  /// that it has started.
  bool outputs_ended() const { return out_.fd < 0 && err_.fd < 0; }
  void reap() override;

 private:
  struct Stream {
    int fd;
    TaskOutput lines;
  };
  static void forward(Stream& stream);
  static void end(Stream& stream);

  int pid_ = -1;
  int exit_fd_ = -1;
  FileDescriptor in_;
  Stream out_, err_;
};

/// Starts tasks on this host.
class ThisHost : public TaskStarter {
 public:
  std::unique_ptr<RunningTask> start(const TaskCommand& command, TaskOutput out,
                                     TaskOutput err) override {
    return std::make_unique<ChildProcess>(command, std::move(out), std::move(err));
  }
};

}  // namespace paceline
