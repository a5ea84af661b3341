#include "launch/ssh/remote_host.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <utility>

#include "base/plain_text.h"
#include "launch/line_prefixer.h"
#include "launch/ssh/host_agent.h"
#include "launch/ssh/ssh_command.h"
#include "paceline/error.h"

namespace paceline {

namespace {

using Kind = HostMessage::Kind;

constexpr std::string_view kGreetingBegins = "paceline agent, version ";
constexpr std::size_t kMostBefore = 1 << 20;  // what a shell may print before the agent begins
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
    // A pipe takes a chunk as a whole, or fails since ssh has ended, which step() notices.
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
  written_.clear();  // such as a banner
  auto text = ready.texts.begin();
  for (const std::string& task : job_.tasks) {
    places_[task] = {std::uint16_t(number_in(*text)), {text + 1, text + std::ptrdiff_t(of_each)}};
    text += std::ptrdiff_t(of_each);
  }
}

// A task that was killed leaves an empty file.
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

}  // namespace paceline
