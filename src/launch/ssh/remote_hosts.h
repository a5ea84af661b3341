// All hosts on which a launcher starts tasks over ssh.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
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
#include "paceline/cluster.h"

namespace paceline {

class RemoteTask;

/// A host on which a launcher starts tasks: the ssh process, and the agent that ssh runs there. For
/// one thread. The host must outlive its tasks.
class RemoteHost : public TaskStarter {
 public:
  /// The port and the files that the host reserves for a task.
  struct Place {
    std::uint16_t port = 0;
    std::vector<std::string> files;  // paths on the host
  };

  /// Starts ssh, and does not wait for it. `files_here` has, for each task, the files on this host
  /// that get what the task has written to its files on the other host. Lines that ssh prints go to
  /// the descriptor `err`, behind `prefix`. Throws kUnavailable.
  RemoteHost(const SshOptions& options, const SshHost& host, HostJob job,
             std::map<std::string, std::vector<std::string>> files_here, const std::string& prefix,
             int err);
  ~RemoteHost() override;

  const std::string& name() const { return host_.name; }
  /// True while the host has neither answered nor failed. Poll what watch() adds and call step()
  /// until then.
  bool is_connecting() const { return failure_.empty() && places_.empty(); }
  /// Why the host cannot be used, in a sentence; empty while it can.
  const std::string& failure() const { return failure_; }
  /// Ends ssh, and marks the host as unusable for this reason.
  void fail(const std::string& why);
  int cores() const { return cores_; }
  const Place& place_of(const std::string& task) const { return places_.at(task); }
  /// The pipe to the agent, for pulses.
  int pulse_fd() const { return ssh_.in_fd(); }

  std::unique_ptr<RunningTask> start(const TaskCommand& command, TaskOutput out,
                                     TaskOutput err) override;
  bool can_start() const override { return failure_.empty(); }
  void watch(std::vector<pollfd>& watched) const { ssh_.watch(watched); }
  /// Handles what ssh has sent, and its end.
  void step();

 private:
  friend class RemoteTask;

  void say(const HostMessage& message);
  void take_output(std::string_view bytes);
  /// Takes the output before the first message: what the user's shell prints, and the agent's
  /// greeting.
  void take_greeting(std::string_view bytes);
  void take_line(std::string_view bytes);
  void take(const HostMessage& message);
  /// Marks the host as unusable, and its tasks as lost.
  void lose(const std::string& why);
  void take_places(const HostMessage& ready);
  void take_file(const RemoteTask& task, const HostMessage& message) const;

  const SshOptions options_;
  const SshHost host_;
  HostJob job_;
  const std::map<std::string, std::vector<std::string>> files_here_;
  TaskOutput lines_;      // what ssh prints, for the user
  std::string written_;   // the last bytes that ssh printed on its standard error
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

/// Writes pulses to pipes at intervals, from its own process. The process keeps writing while the
/// launcher is stopped or waits for the reader of its output, and ends with the launcher.
class Pulse {
 public:
  /// Throws kUnavailable.
  Pulse(const std::vector<int>& pipes, Duration every);
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

 private:
  int pid_ = -1;
};

/// For one thread.
class RemoteHosts {
 public:
  /// What the launcher knows about the tasks before any host has answered.
  struct Job {
    std::vector<TaskId> tasks;  // as SshOptions::placement has them
    std::string program;        // that the tasks will run
    /// Returns the files on this host that get what the task has written to its files on the other
    /// host.
    std::function<std::vector<std::string>(const TaskId& task)> files_here;
    std::function<std::string(const std::string& name)> prefix;  // of the lines of ssh
    int err = 2;
  };

  explicit RemoteHosts(const SshOptions& options) : options_(options) {}

  /// Starts ssh to all hosts at once, and waits until each host is ready for its tasks. Throws
  /// kFailedPrecondition, which names the hosts that are not ready, and kCancelled if `ending`
  /// becomes readable.
  void connect(const Job& job, int ending);

  RemoteHost& of(const TaskId& task) { return *hosts_[index_of(task)]; }
  const RemoteHost& of(const TaskId& task) const { return *hosts_[index_of(task)]; }
  /// Returns the number of workers on that task's host.
  int workers_beside(const TaskId& task) const;
  /// Returns "host:port", the address by which the other tasks reach the task.
  std::string address_of(const TaskId& task) const;
  /// Returns the flags that make a task listen at all addresses of its host; none if there is only
  /// one host.
  std::vector<std::string> flags_of(const TaskId& task) const;
  /// Returns "3 hosts over ssh (a, b, c)", with the hosts that have tasks.
  std::string where() const;
  /// Returns the lines that say which tasks share cores, and which hosts have no tasks.
  std::string shared_text() const;

 private:
  std::size_t index_of(const TaskId& task) const;
  HostJob job_of_host(std::size_t host, const Job& job) const;
  bool any_connecting() const;
  void wait_for_answers(int ending) const;

  const SshOptions options_;
  std::vector<std::unique_ptr<RemoteHost>> hosts_;  // null: no task is on the host
  std::unique_ptr<Pulse> pulse_;
};

}  // namespace paceline
