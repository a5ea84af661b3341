// All hosts on which a launcher starts tasks over ssh.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/ssh/remote_host.h"
#include "launch/ssh/ssh_options.h"
#include "paceline/cluster.h"

namespace paceline {

/// Writes to pipes again and again, from a process of its own: it goes on while the launcher is
/// stopped, or waits for whoever reads its output, and ends with it.
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

/// Threads: one.
class RemoteHosts {
 public:
  /// The launcher's knowledge of the tasks before any host has answered.
  struct Job {
    std::vector<TaskId> tasks;  // as SshOptions::placement has them
    std::string program;        // which they will be
    /// The files here of a task, which get what it has written to those of its host.
    std::function<std::vector<std::string>(const TaskId& task)> files_here;
    std::function<std::string(const std::string& name)> prefix;  // of the lines of ssh
    int err = 2;
  };

  explicit RemoteHosts(const SshOptions& options) : options_(options) {}

  /// Starts ssh to all hosts at once, and waits until each has what the tasks need. Throws
  /// kFailedPrecondition, which names each host that has not, and kCancelled when `ending` becomes
  /// readable.
  void connect(const Job& job, int ending);

  RemoteHost& of(const TaskId& task) { return *hosts_[index_of(task)]; }
  const RemoteHost& of(const TaskId& task) const { return *hosts_[index_of(task)]; }
  /// The number of workers on the host of that task.
  int workers_beside(const TaskId& task) const;
  /// "host:port", by which the other tasks reach it.
  std::string address_of(const TaskId& task) const;
  /// The flags by which a task listens at all addresses of its host; none when nobody else comes.
  std::vector<std::string> flags_of(const TaskId& task) const;
  /// "3 hosts over ssh (a, b, c)": those that have tasks.
  std::string where() const;
  /// The lines that say which cores the tasks share, and which hosts have none.
  std::string shared_text() const;

 private:
  std::size_t index_of(const TaskId& task) const;
  HostJob job_of_host(std::size_t host, const Job& job) const;
  bool any_connecting() const;
  void wait_for_answers(int ending) const;

  const SshOptions options_;
  std::vector<std::unique_ptr<RemoteHost>> hosts_;  // null: it has no task
  std::unique_ptr<Pulse> pulse_;
};

}  // namespace paceline
