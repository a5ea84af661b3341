#include "launch/ssh/remote_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>

#include "base/address.h"
#include "base/deadline.h"
#include "base/printed.h"
#include "net/held_ports.h"
#include "paceline/error.h"

namespace paceline {

namespace {

constexpr Duration kAnswersWithin = std::chrono::seconds(60);
constexpr int kPulsesBeforeSilence = 6;

std::int64_t milliseconds_of(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// Calls only what may be called between fork and the end.
[[noreturn]] void beat(pollfd* pipes, std::size_t count, int every_ms, int parent) {
  setpgid(0, 0);  // Ctrl-Z stops the launcher alone
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr char kPulse[sizeof(std::uint16_t)] = {};
  while (getppid() == parent) {
    poll(pipes, nfds_t(count), 0);
    for (std::size_t i = 0; i < count; ++i) {
      const bool takes = (pipes[i].revents & POLLOUT) != 0;
      if (takes && write(pipes[i].fd, kPulse, sizeof kPulse) < 0) pipes[i].fd = -1;
    }
    poll(nullptr, 0, every_ms);
  }
  _exit(0);
}

}  // namespace

Pulse::Pulse(const std::vector<int>& pipes, Duration every) {
  std::vector<pollfd> polled;
  polled.reserve(pipes.size());
  for (const int pipe : pipes) polled.push_back({pipe, POLLOUT, 0});
  const int parent = getpid();
  pid_ = fork();
  if (pid_ == 0) beat(polled.data(), polled.size(), int(milliseconds_of(every)), parent);
  if (pid_ < 0) throw Error(ErrorCode::kUnavailable, fmt::format("fork: {}", std::strerror(errno)));
}

Pulse::~Pulse() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::size_t RemoteHosts::index_of(const TaskId& task) const {
  const Placement& placement = options_.placement;
  const bool ps = task.role == TaskId::Role::kPs;
  return std::size_t((ps ? placement.ps : placement.workers)[std::size_t(task.index)]);
}

HostJob RemoteHosts::job_of_host(std::size_t host, const Job& job) const {
  HostJob own{.folder = options_.folder,
              .program = job.program,
              .bind = options_.several() ? everywhere(options_.hosts[host].name) : "127.0.0.1",
              .first_port = options_.first_port,
              .files = int(job.files_here(job.tasks.front()).size()),
              .silence_ms = milliseconds_of(options_.silence),
              .end_within_ms = milliseconds_of(options_.end_within),
              .environment = options_.environment};
  for (const TaskId& task : job.tasks) {
    if (index_of(task) == host) own.tasks.push_back(task.str());
  }
  return own;
}

void RemoteHosts::connect(const Job& job, int ending) {
  for (std::size_t i = 0; i < options_.hosts.size(); ++i) {
    const SshHost& host = options_.hosts[i];
    HostJob own = job_of_host(i, job);
    std::map<std::string, std::vector<std::string>> files;
    for (const TaskId& task : job.tasks) {
      if (index_of(task) == i) files[task.str()] = job.files_here(task);
    }
    hosts_.push_back(own.tasks.empty() ? nullptr
                                       : std::make_unique<RemoteHost>(
                                             options_, host, std::move(own), std::move(files),
                                             job.prefix(host.name), job.err));
  }
  wait_for_answers(ending);
  std::vector<std::string> failures;
  std::vector<int> pipes;
  for (const auto& host : hosts_) {
    if (host == nullptr) continue;
    pipes.push_back(host->pulse_fd());
    if (!host->failure().empty()) failures.push_back(host->failure());
  }
  if (!failures.empty())
    throw Error(ErrorCode::kFailedPrecondition, fmt::format("{}", fmt::join(failures, "\n")));
  pulse_ = std::make_unique<Pulse>(pipes, options_.silence / kPulsesBeforeSilence);
}

bool RemoteHosts::any_connecting() const {
  return std::ranges::any_of(
      hosts_, [](const auto& host) { return host != nullptr && host->is_connecting(); });
}

void RemoteHosts::wait_for_answers(int ending) const {
  const Deadline deadline = Deadline::after(kAnswersWithin);
  while (any_connecting() && !deadline.passed()) {
    std::vector<pollfd> watched = {{ending, POLLIN, 0}};
    for (const auto& host : hosts_) {
      if (host != nullptr && host->is_connecting()) host->watch(watched);
    }
    poll(watched.data(), watched.size(), int(milliseconds_of(deadline.left())) + 1);
    signalfd_siginfo taken;
    if (read(ending, &taken, sizeof taken) > 0) throw Error(ErrorCode::kCancelled, "interrupted");
    for (const auto& host : hosts_) {
      if (host != nullptr) host->step();
    }
  }
  for (const auto& host : hosts_) {
    if (host == nullptr || !host->is_connecting()) continue;
    host->fail(fmt::format("ssh has said nothing for {:g} s: see whether ssh {} true ends",
                           std::chrono::duration<double>(kAnswersWithin).count(), host->name()));
  }
}

int RemoteHosts::workers_beside(const TaskId& task) const {
  return int(std::ranges::count(options_.placement.workers, int(index_of(task))));
}

std::string RemoteHosts::address_of(const TaskId& task) const {
  const RemoteHost& host = of(task);
  const std::string name = options_.several() ? host.name() : "127.0.0.1";
  return text_of({name, host.place_of(task.str()).port});
}

std::vector<std::string> RemoteHosts::flags_of(const TaskId& task) const {
  if (!options_.several()) return {};
  const std::string all = everywhere(of(task).name());
  return {"--bind", all.find(':') == std::string::npos ? all : "[" + all + "]"};
}

std::string RemoteHosts::where() const {
  std::vector<std::string> names;
  for (const auto& host : hosts_) {
    if (host != nullptr) names.push_back(host->name());
  }
  return fmt::format("{} over ssh ({})", counted(std::int64_t(names.size()), "host"),
                     fmt::join(names, ", "));
}

std::string RemoteHosts::shared_text() const {
  std::vector<std::string> cores, idle;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i] == nullptr) {
      idle.push_back(options_.hosts[i].name);
    } else {
      cores.push_back(
          fmt::format("{} of {}", counted(hosts_[i]->cores(), "core"), hosts_[i]->name()));
    }
  }
  std::string text = fmt::format("  The tasks of a host share {}.\n", fmt::join(cores, ", "));
  if (!idle.empty()) text += fmt::format("  No task is on {}.\n", fmt::join(idle, ", "));
  return text;
}

}  // namespace paceline
