#include "launch/ssh/host_agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/cores.h"
#include "base/memory_file.h"
#include "launch/child_process.h"
#include "launch/ssh/host_message.h"
#include "net/held_ports.h"
#include "paceline/error.h"
#include "paceline/version.h"
#include "run/ending_signals.h"
#include "run/limits.h"

namespace paceline {

const char* const kAgentWord = "--agent";

std::string agent_greeting() {
  return fmt::format("paceline agent, version {}\n", version_and_commit());
}

namespace {

using Kind = HostMessage::Kind;

// If more bytes than this are unsent, tasks' output stays in their pipes until the launcher reads
// again.
constexpr std::size_t kMostUnsent = 1 << 20;
constexpr Duration kRefusedWithin = std::chrono::seconds(10);
constexpr Duration kPreparedWithin = std::chrono::seconds(60);

TimePoint now_here() { return std::chrono::steady_clock::now(); }

int milliseconds_to(TimePoint moment) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(moment - now_here()).count();
  return int(std::clamp<std::int64_t>(left, 0, 60'000));
}

[[noreturn]] void refuse_job(const std::string& why) {
  throw Error(ErrorCode::kFailedPrecondition, why);
}

bool is_executable(const std::filesystem::path& path) {
  std::error_code unseen;
  return std::filesystem::is_regular_file(path, unseen) && access(path.c_str(), X_OK) == 0;
}

// Looks for the program where execvp will look for it. Throws kFailedPrecondition if it is not
// there.
void check_program(const std::string& program, const std::string& folder) {
  if (program.find('/') != std::string::npos) {
    if (is_executable(program)) return;
    refuse_job(fmt::format("there is no program {} (in folder {})", program, folder));
  }
  const char* const path = std::getenv("PATH");
  const std::string_view all = path == nullptr ? "/bin:/usr/bin" : path;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(':', begin), all.size());
    if (is_executable(std::filesystem::path(all.substr(begin, end - begin)) / program)) return;
    begin = end + 1;
  }
  refuse_job(fmt::format("there is no program {} in its PATH ({})", program, all));
}

/// Single-threaded.
class HostAgent {
 public:
  HostAgent();
  int run();

 private:
  /// A child process and its task.
  struct Child {
    std::int32_t number;
    std::size_t task;
    std::unique_ptr<ChildProcess> process;
  };

  void say(const HostMessage& message);
  void turn();
  void wait();
  void take_bytes();
  void take(const HostMessage& message);
  void prepare(const HostJob& job);
  void start(const HostMessage& message);
  TaskOutput output_of(std::int32_t number, int stream);
  void write_unsent();
  void send_rest();
  void look_after(Child& child);
  void say_end(const Child& child);
  /// Asks the tasks to end, since the launcher is lost.
  void leave();
  bool is_over() const;
  bool is_gone(const Child& child) const;

  EndingSignals signals_;
  ChildSignals child_signals_;
  MemoryKills memory_kills_;
  HostMessageReader messages_;
  std::string unsent_;
  HostJob job_;
  std::optional<HeldPorts> ports_;
  std::deque<MemoryFile> files_;
  std::vector<Child> children_;
  TimePoint heard_ = now_here();
  Duration silence_ = kPreparedWithin;
  // When what still runs is killed; set once the launcher is lost.
  std::optional<TimePoint> killed_at_;
};

HostAgent::HostAgent() : unsent_(agent_greeting()) {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
    fcntl(stream, F_SETFL, fcntl(stream, F_GETFL) | O_NONBLOCK);
}

int HostAgent::run() {
  int status = 0;
  try {
    while (!is_over()) turn();
  } catch (const Error& error) {
    say({.kind = Kind::kRefused, .texts = {error.what()}});
    send_rest();
    status = 1;
  }
  children_.clear();  // kills what still runs
  signals_.drain();
  return status;
}

void HostAgent::turn() {
  wait();
  signalfd_siginfo taken;
  if (read(signals_.fd(), &taken, sizeof taken) > 0) leave();
  take_bytes();
  child_signals_.drain();
  for (Child& child : children_) look_after(child);
  write_unsent();
  if (!killed_at_ && now_here() - heard_ >= silence_) leave();
}

bool HostAgent::is_over() const {
  if (!killed_at_) return false;
  return now_here() >= *killed_at_ ||
         std::ranges::all_of(children_, [&](const Child& child) { return is_gone(child); });
}

// A command may have started the program that trains, which then holds the command's outputs, too.
// Once the launcher is lost, the command's process is not reaped before these outputs are closed,
// so that its process group keeps its number.
bool HostAgent::is_gone(const Child& child) const {
  return !child.process->running() ||
         (child.process->has_ended() && child.process->outputs_ended());
}

void HostAgent::leave() {
  if (killed_at_) return;
  killed_at_ = now_here() + std::chrono::milliseconds(job_.end_within_ms);
  unsent_.clear();
  for (Child& child : children_) child.process->send_signal(SIGTERM);
}

void HostAgent::wait() {
  std::vector<pollfd> watched = {{signals_.fd(), POLLIN, 0}, {child_signals_.fd(), POLLIN, 0}};
  if (!killed_at_) watched.push_back({STDIN_FILENO, POLLIN, 0});
  if (!unsent_.empty()) watched.push_back({STDOUT_FILENO, POLLOUT, 0});
  for (const Child& child : children_) {
    if (unsent_.size() >= kMostUnsent || is_gone(child)) continue;
    // If poll watched the exit of an ended process whose group still runs, it would return again
    // and again.
    const bool lingers = killed_at_ && child.process->has_ended();
    lingers ? child.process->watch_outputs(watched) : child.process->watch(watched);
  }
  poll(watched.data(), watched.size(), milliseconds_to(killed_at_.value_or(heard_ + silence_)));
}

void HostAgent::say(const HostMessage& message) {
  if (killed_at_) return;
  for (const std::string& chunk : chunks_of(message)) unsent_ += chunk;
}

void HostAgent::take_bytes() {
  std::array<char, 16384> bytes;
  while (!killed_at_) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) return leave();
    heard_ = now_here();
    messages_.add({bytes.data(), std::size_t(got)});
  }
  while (const std::optional<HostMessage> message = messages_.next()) take(*message);
}

void HostAgent::take(const HostMessage& message) {
  if (message.kind == Kind::kPrepare) return prepare(job_of(message));
  if (message.kind == Kind::kStart) return start(message);
  const auto child = std::ranges::find(children_, message.task, &Child::number);
  if (child == children_.end()) return;
  if (message.kind == Kind::kSignal) child->process->send_signal(message.number);
  if (message.kind == Kind::kEndInput) child->process->end_input();
}

void HostAgent::prepare(const HostJob& job) {
  job_ = job;
  silence_ = std::chrono::milliseconds(job.silence_ms);
  for (const std::string& variable : job.environment) {
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  if (chdir(job.folder.c_str()) != 0) {
    refuse_job(
        fmt::format("folder {}: {}; --cwd DIR names another", job.folder, std::strerror(errno)));
  }
  check_program(job.program, job.folder);
  try {
    ports_.emplace(int(job.tasks.size()), job.bind, job.first_port);
  } catch (const Error& error) {
    refuse_job(fmt::format("{} (for {} from --first-port {} on)", error.what(),
                           fmt::join(job.tasks, ", "), job.first_port));
  }
  HostMessage ready{.kind = Kind::kReady, .number = usable_cores()};
  for (const std::string& address : ports_->addresses()) {
    ready.texts.push_back(std::to_string(parse_address(address).port));
    for (int i = 0; i < job.files; ++i) ready.texts.push_back(files_.emplace_back().path());
  }
  say(ready);
}

void HostAgent::start(const HostMessage& message) {
  constexpr std::size_t kFirst = 4;
  const std::vector<std::string>& texts = message.texts;
  const auto task = std::ranges::find(job_.tasks, texts.empty() ? "" : texts.front());
  if (texts.size() < kFirst || task == job_.tasks.end())
    throw Error(ErrorCode::kDataLoss, "the launcher starts a task that it has not announced");
  TaskCommand command{.name = texts[0],
                      .program = texts[1],
                      .arguments = {texts.begin() + kFirst, texts.end()},
                      .task_variable = texts[2]};
  if (!texts[3].empty()) command.key = SecretKey::parse(texts[3], "the launcher");
  children_.push_back({message.task, std::size_t(task - job_.tasks.begin()),
                       std::make_unique<ChildProcess>(command, output_of(message.task, 1),
                                                      output_of(message.task, 2))});
}

TaskOutput HostAgent::output_of(std::int32_t number, int stream) {
  return {[this, number, stream](std::string_view chunk) {
            say({Kind::kOutput, number, stream, {std::string(chunk)}});
          },
          [] {}};
}

void HostAgent::look_after(Child& child) {
  ChildProcess& process = *child.process;
  if (!process.running()) return;
  const bool was_stopped = process.stopped();
  process.note_stops();
  if (process.stopped() != was_stopped)
    say({Kind::kStopped, child.number, process.stopped() ? 1 : 0});
  if (unsent_.size() < kMostUnsent) process.forward_output();
  if (killed_at_ || !process.has_ended()) return;
  process.reap();
  if (process.status().signal == SIGKILL) process.explain(memory_kills_.newly_killed());
  say_end(child);
}

void HostAgent::say_end(const Child& child) {
  for (int i = 0; i < job_.files; ++i) {
    const std::size_t file = child.task * std::size_t(job_.files) + std::size_t(i);
    say({Kind::kFile, child.number, i, {files_[file].text()}});
  }
  const ExitStatus& status = child.process->status();
  say({Kind::kEnded, child.number, status.code, {std::to_string(status.signal), status.why}});
}

void HostAgent::write_unsent() {
  while (!unsent_.empty()) {
    const ssize_t written = write(STDOUT_FILENO, unsent_.data(), unsent_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written <= 0) return leave();
    unsent_.erase(0, std::size_t(written));
  }
}

// Sends the agent's last messages before it ends.
void HostAgent::send_rest() {
  const TimePoint until = now_here() + kRefusedWithin;
  for (write_unsent(); !unsent_.empty() && now_here() < until; write_unsent()) {
    pollfd out{STDOUT_FILENO, POLLOUT, 0};
    poll(&out, 1, milliseconds_to(until));
  }
}

}  // namespace

int run_agent() { return HostAgent().run(); }

}  // namespace paceline
