#include "launch/ssh/remote_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/address.h"
#include "base/deadline.h"
#include "base/plain_text.h"
#include "base/printed.h"
#include "launch/line_prefixer.h"
#include "launch/ssh/host_agent.h"
#include "launch/ssh/ssh_command.h"
#include "net/held_ports.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using Kind = HostMessage::Kind;

constexpr std::string_view kGreetingBegins = "paceline agent, version ";
// The most that a shell may print before the agent's first line.
constexpr std::size_t kMostBefore = 1 << 20;
constexpr std::size_t kMostKept = 1 << 16;

std::string version_in(std::string_view greeting) {
  greeting.remove_prefix(kGreetingBegins.size());
  greeting.remove_suffix(1);
  return plain_text(greeting);
}

TaskCommand command_of(const SshOptions& options, const SshHost& host) {
  const std::vector<std::string> words = ssh_words(options, host);
  return {.name = fmt::format("ssh to {}", host.name),
          .program = words.front(),
          .arguments = {words.begin() + 1, words.end()}};
}

}  // namespace

RemoteHost::RemoteHost(const SshOptions& options, const SshHost& host, HostJob job,
                       std::map<std::string, std::vector<std::string>> files_here,
                       const std::string& prefix, int err)
    : options_(options),
      host_(host),
      job_(std::move(job)),
      files_here_(std::move(files_here)),
      lines_(prefixed_lines(prefix, err)),
      ssh_(command_of(options, host),
           {[this](std::string_view bytes) { take_output(bytes); }, [] {}},
           {[this](std::string_view bytes) { take_line(bytes); }, [] {}}) {}

RemoteHost::~RemoteHost() = default;

void RemoteHost::say(const HostMessage& message) {
  for (const std::string& chunk : chunks_of(message)) {
    // A pipe takes a chunk whole. The write fails if ssh has ended, which step() notices.
    while (write(ssh_.in_fd(), chunk.data(), chunk.size()) < 0 && errno == EINTR) {
    }
  }
}

void RemoteHost::take_line(std::string_view bytes) {
  if (!places_.empty()) lines_.add(bytes);
  written_ += bytes;
  if (written_.size() > kMostKept) written_.erase(0, written_.size() - kMostKept);
}

void RemoteHost::take_output(std::string_view bytes) {
  if (!failure_.empty()) return;
  greeted_ ? messages_.add(bytes) : take_greeting(bytes);
  try {
    while (const std::optional<HostMessage> message = messages_.next()) take(*message);
  } catch (const Error& error) {
    fail(error.what());
  }
}

void RemoteHost::take_greeting(std::string_view bytes) {
  greeting_ += bytes;
  const std::size_t begin = greeting_.find(kGreetingBegins);
  const std::size_t end = begin == greeting_.npos ? begin : greeting_.find('\n', begin);
  if (end == greeting_.npos) {
    if (greeting_.size() > kMostBefore) fail("the user's shell prints without end");
    return;
  }
  const std::string greeting = greeting_.substr(begin, end + 1 - begin);
  if (greeting != agent_greeting()) {
    return fail(fmt::format("{} is version {} there and {} here: install the same one there",
                            options_.paceline, version_in(greeting), version_in(agent_greeting())));
  }
  greeted_ = true;
  messages_.add(std::string_view(greeting_).substr(end + 1));
  say(message_of(job_));
}

void RemoteHost::take(const HostMessage& message) {
  if (message.kind == Kind::kReady) return take_places(message);
  if (message.kind == Kind::kRefused)
    return fail(message.texts.empty() ? "it refuses the job" : plain_text(message.texts.front()));
  const auto found = tasks_.find(message.task);
  if (found == tasks_.end()) return;
  RemoteTask& task = *found->second;
  if (message.kind == Kind::kOutput && !message.texts.empty())
    (message.number == 1 ? task.out_ : task.err_).add(message.texts.front());
  if (message.kind == Kind::kStopped) task.stopped_ = message.number == 1;
  if (message.kind == Kind::kFile) take_file(task, message);
  if (message.kind == Kind::kEnded && message.texts.size() == 2)
    task.end_ = ExitStatus{message.number, int(number_in(message.texts[0])), message.texts[1]};
}

void RemoteHost::take_places(const HostMessage& ready) {
  const auto of_each = 1 + std::size_t(job_.files);
  if (ready.texts.size() != of_each * job_.tasks.size()) return fail("its answer is no answer");
  cores_ = ready.number;
  written_.clear();  // drops output such as a banner
  auto text = ready.texts.begin();
  for (const std::string& task : job_.tasks) {
    places_[task] = {std::uint16_t(number_in(*text)), {text + 1, text + std::ptrdiff_t(of_each)}};
    text += std::ptrdiff_t(of_each);
  }
}

// Stores what the task has written to its file; a killed task leaves an empty file.
void RemoteHost::take_file(const RemoteTask& task, const HostMessage& message) const {
  const std::vector<std::string>& files = files_here_.at(task.name());
  if (message.number < 0 || std::size_t(message.number) >= files.size() || message.texts.empty())
    return;
  std::ofstream(files[std::size_t(message.number)], std::ios::binary) << message.texts.front();
}

void RemoteHost::fail(const std::string& why) { lose(fmt::format("host {}: {}", host_.name, why)); }

void RemoteHost::lose(const std::string& why) {
  if (!failure_.empty()) return;
  failure_ = why;
  ssh_.send_signal(SIGKILL);
  for (const auto& [number, task] : tasks_) {
    if (!task->end_) task->end_ = ExitStatus{.why = failure_, .lost = true};
  }
}

void RemoteHost::step() {
  if (!ssh_.running()) return;
  ssh_.forward_output();
  if (!ssh_.has_ended()) return;
  ssh_.reap();
  lines_.end();
  lose(places_.empty() ? why_not_reached(options_, host_, written_, ssh_.status().code)
                       : why_lost(host_, written_));
}

std::unique_ptr<RunningTask> RemoteHost::start(const TaskCommand& command, TaskOutput out,
                                               TaskOutput err) {
  HostMessage message{.kind = Kind::kStart, .task = ++started_};
  message.texts = {command.name, command.program, command.task_variable,
                   command.key ? command.key->text() : ""};
  message.texts.insert(message.texts.end(), command.arguments.begin(), command.arguments.end());
  auto task =
      std::make_unique<RemoteTask>(*this, started_, command, std::move(out), std::move(err));
  say(message);
  return task;
}

RemoteTask::RemoteTask(RemoteHost& host, std::int32_t number, const TaskCommand& command,
                       TaskOutput out, TaskOutput err)
    : RunningTask(command),
      host_(host),
      number_(number),
      out_(std::move(out)),
      err_(std::move(err)) {
  host_.tasks_[number] = this;
  if (!host_.failure_.empty()) end_ = ExitStatus{.why = host_.failure_, .lost = true};
}

RemoteTask::~RemoteTask() {
  RemoteTask::send_signal(SIGKILL);
  host_.tasks_.erase(number_);
}

void RemoteTask::send_signal(int signal) {
  if (running() && !end_) host_.say({Kind::kSignal, number_, signal});
}

void RemoteTask::end_input() {
  if (running() && !std::exchange(input_ended_, true)) host_.say({Kind::kEndInput, number_});
}

void RemoteTask::give_up() {
  if (running()) host_.fail("it does not answer, and is waited for no longer");
}

void RemoteTask::reap() {
  status_ = *end_;
  out_.end();
  err_.end();
}

namespace {

constexpr Duration kAnswersWithin = std::chrono::seconds(60);
constexpr int kPulsesBeforeSilence = 6;

std::int64_t milliseconds_of(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// Calls only functions that are safe in a forked process.
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
