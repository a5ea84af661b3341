// A host on which a launcher starts tasks: ssh, and the agent that it runs there.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/child_process.h"
#include "launch/running_task.h"
#include "launch/ssh/host_message.h"
#include "launch/ssh/ssh_options.h"

namespace paceline {

class RemoteTask;

/// Threads: one. Its tasks must not outlive it.
class RemoteHost : public TaskStarter {
 public:
  /// The ports and files that are kept there for a task.
  struct Place {
    std::uint16_t port = 0;
    std::vector<std::string> files;  // paths on the host
  };

  /// Starts ssh, and does not wait for it. `files_here` are files for each of the tasks, which get
  /// what the task has written to those of its place. Lines of ssh go to the descriptor `err`,
  /// behind `prefix`. Throws kUnavailable.
  RemoteHost(const SshOptions& options, const SshHost& host, HostJob job,
             std::map<std::string, std::vector<std::string>> files_here, const std::string& prefix,
             int err);
  ~RemoteHost() override;

  const std::string& name() const { return host_.name; }
  /// Nothing is known yet; poll until then.
  bool is_connecting() const { return failure_.empty() && places_.empty(); }
  /// Why it cannot be used, in a sentence; empty while it can.
  const std::string& failure() const { return failure_; }
  /// Ends ssh, and says why.
  void fail(const std::string& why);
  int cores() const { return cores_; }
  const Place& place_of(const std::string& task) const { return places_.at(task); }
  /// The pipe to the agent, for pulses.
  int pulse_fd() const { return ssh_.in_fd(); }

  std::unique_ptr<RunningTask> start(const TaskCommand& command, TaskOutput out,
                                     TaskOutput err) override;
  bool can_start() const override { return failure_.empty(); }
  void watch(std::vector<pollfd>& watched) const { ssh_.watch(watched); }
  /// Takes what has arrived.
  void step();

 private:
  friend class RemoteTask;

  void say(const HostMessage& message);
  void take_output(std::string_view bytes);
  /// Takes what comes before the messages.
  void take_greeting(std::string_view bytes);
  void take_line(std::string_view bytes);
  void take(const HostMessage& message);
  /// It cannot be used any more, and its tasks are lost.
  void lose(const std::string& why);
  void take_places(const HostMessage& ready);
  void take_file(const RemoteTask& task, const HostMessage& message) const;

  const SshOptions options_;
  const SshHost host_;
  HostJob job_;
  const std::map<std::string, std::vector<std::string>> files_here_;
  TaskOutput lines_;      // of ssh
  std::string written_;   // by ssh itself
  std::string greeting_;  // what came before the first message
  bool greeted_ = false;
  HostMessageReader messages_;
  std::map<std::string, Place> places_;
  int cores_ = 0;
  std::string failure_;
  std::map<std::int32_t, RemoteTask*> tasks_;
  std::int32_t started_ = 0;
  ChildProcess ssh_;
};

/// A process of a RemoteHost.
class RemoteTask : public RunningTask {
 public:
  RemoteTask(RemoteHost& host, std::int32_t number, const TaskCommand& command, TaskOutput out,
             TaskOutput err);
  ~RemoteTask() override;

  std::string host() const override { return host_.name(); }
  void note_stops() override {}
  void send_signal(int signal) override;
  void end_input() override;
  void give_up() override;
  void watch(std::vector<pollfd>& watched) const override { host_.watch(watched); }
  void forward_output() override { host_.step(); }
  bool has_ended() const override { return end_.has_value(); }
  void reap() override;

 private:
  friend class RemoteHost;

  RemoteHost& host_;
  const std::int32_t number_;
  TaskOutput out_, err_;
  std::optional<ExitStatus> end_;
  bool input_ended_ = false;
};

}  // namespace paceline
