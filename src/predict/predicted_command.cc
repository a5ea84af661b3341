#include "predict/predicted_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "net/shm/unix_socket.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using MessageKind = CopiesMessage::Kind;

// The time in which copies that are no longer needed may end by themselves, and the time after
// SIGTERM after which they are killed.
constexpr Duration kCopyEndsWithin = std::chrono::seconds(5);
constexpr Duration kLeastCopiesTime = std::chrono::seconds(30);
constexpr std::size_t kMostOutputKept = 4096;  // bytes of a copy's output
constexpr int kOutputLinesShown = 5;

TimePoint real_now() { return std::chrono::steady_clock::now(); }

sigset_t awaited_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int one : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, one);
  return signals;
}

// Returns the last lines of a text, each after two spaces.
std::string end_of_output(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  std::size_t begin = text.size();
  for (int lines = 0; lines < kOutputLinesShown && begin != std::string::npos; ++lines) {
    begin = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
  }
  std::string shown = "\n  ";
  for (const char c : text.substr(begin == std::string::npos ? 0 : begin + 1)) {
    shown += c;
    if (c == '\n') shown += "  ";
  }
  return shown;
}

}  // namespace

PredictedCommand::PredictedCommand(PredictedCommandOptions options)
    : options_(std::move(options)), listener_(listen_at_abstract(options_.name)) {
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  signals_ = FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

PredictedCommand::~PredictedCommand() {
  copies_.clear();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

ExitStatus PredictedCommand::run() {
  begun_ = real_now();
  start_command();
  while (!ended_ || any_copy()) {
    wait_for_events();
    for (Copy& copy : copies_) copy.process->forward_output();
    take_signals();
    take_callers();
    take_messages();
    take_exits();
    end_in_time();
    if (answer_ && !any_copy()) answer(*std::exchange(answer_, {}));
  }
  return *ended_;
}

void PredictedCommand::start_command() {
  setenv("PACELINE_PREDICT", options_.predict.c_str(), 1);
  std::vector<std::string> texts = options_.command;
  std::vector<char*> words;
  words.reserve(texts.size() + 1);
  for (std::string& word : texts) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &before_);
  const int error =
      posix_spawnp(&command_, words.front(), nullptr, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} cannot be run: {}", options_.command.front(),
                                             std::generic_category().message(error)));
}

void PredictedCommand::wait_for_events() {
  std::vector<pollfd> watched = {
      {signals_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}, {asker_.get(), POLLIN, 0}};
  for (const FileDescriptor& caller : callers_) watched.push_back({caller.get(), POLLIN, 0});
  for (const Copy& copy : copies_) {
    if (copy.process->running()) copy.process->watch(watched);
    if (copy.socket) watched.push_back({copy.socket.get(), POLLIN, 0});
  }
  int wait_ms = -1;
  if (until_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until_ - real_now());
    constexpr std::chrono::milliseconds::rep kMostMs = 3'600'000;
    wait_ms = int(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, kMostMs));
  }
  poll(watched.data(), watched.size(), wait_ms);
}

void PredictedCommand::take_signals() {
  signalfd_siginfo seen;
  while (read(signals_.get(), &seen, sizeof seen) == sizeof seen) {
    const int signal = int(seen.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (seen.ssi_code != SI_KERNEL && !ended_) kill(command_, signal);
    if (std::exchange(interrupted_, true)) {
      end_copies({});
    } else if (any_copy()) {
      asker_ = FileDescriptor();
      answer_.reset();
      end_copies({});
    }
  }
  int status = 0;
  if (ended_ || waitpid(command_, &status, WNOHANG) != command_) return;
  ended_ = WIFSIGNALED(status) ? ExitStatus{.signal = WTERMSIG(status)}
                               : ExitStatus{.code = WEXITSTATUS(status)};
  asker_ = FileDescriptor();
  if (any_copy()) end_copies({});
}

void PredictedCommand::take_callers() {
  while (true) {
    FileDescriptor caller(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!caller) return;
    if (is_of_this_user(caller.get())) callers_.push_back(std::move(caller));
  }
}

void PredictedCommand::take_messages() {
  for (FileDescriptor& caller : callers_) take_message(caller);
  std::erase_if(callers_, [](const FileDescriptor& caller) { return !caller; });
  for (Copy& copy : copies_) take_pace(copy);
  tell_paces();
  bool ended = false;
  if (asker_) copies_message_at_hand(asker_.get(), ended);
  if (!ended) return;
  asker_ = FileDescriptor();
  answer_.reset();
  if (any_copy()) end_copies({});
}

void PredictedCommand::take_pace(Copy& copy) {
  if (!copy.socket) return;
  bool ended = false;
  const auto message = copies_message_at_hand(copy.socket.get(), ended);
  if (ended) copy.socket = FileDescriptor();
  if (message && message->kind == MessageKind::kPace) copy.pace = message->paces.front();
}

// Takes the first message of a caller, which says who it is.
void PredictedCommand::take_message(FileDescriptor& from) {
  bool ended = false;
  const auto message = copies_message_at_hand(from.get(), ended);
  if (!message && !ended) return;
  FileDescriptor socket = std::move(from);
  if (!message || interrupted_ || ended_) return;
  if (message->kind == MessageKind::kAsk) take_question(socket, message->number);
  if (message->kind == MessageKind::kReady) take_ready(socket, message->number);
}

void PredictedCommand::take_question(FileDescriptor& from, int copies) {
  if (any_copy()) return;
  asker_ = std::move(from);
  start_copies(copies);
}

void PredictedCommand::take_ready(FileDescriptor& from, int copy) {
  if (copy > int(copies_.size()) || ending_) return;
  copies_[std::size_t(copy - 1)].socket = std::move(from);
  let_all_go();
}

void PredictedCommand::let_all_go() {
  if (!std::ranges::all_of(copies_, [](const Copy& copy) { return bool(copy.socket); })) return;
  for (const Copy& copy : copies_) {
    send_message(copy.socket.get(), text_of({.kind = MessageKind::kGo}), -1);
  }
}

void PredictedCommand::start_copies(int copies) {
  if (options_.say) {
    options_.say(
        fmt::format("Runs {} copies of the command at once, which slow each other", copies));
  }
  ending_ = asked_to_end_ = false;
  const Duration usual = std::max<Duration>((copies + 1) * (real_now() - begun_), kLeastCopiesTime);
  until_ = real_now() + options_.within.value_or(usual);
  copies_.clear();
  try {
    for (int copy = 1; copy <= copies; ++copy) copies_.push_back(started(copy, copies));
  } catch (const Error& error) {
    give_up(error.what());
  }
}

PredictedCommand::Copy PredictedCommand::started(int copy, int copies) const {
  TaskCommand command{.name = fmt::format("copy {} of {}", copy, copies),
                      .program = options_.command.front(),
                      .arguments = {options_.command.begin() + 1, options_.command.end()}};
  command.variables = {"PACELINE_PREDICT=" + options_.predict_of_copy(copy, copies)};
  Copy made;
  const auto keep = [written = made.written](std::string_view chunk) {
    *written += chunk;
    if (written->size() > kMostOutputKept) written->erase(0, written->size() - kMostOutputKept);
  };
  made.process =
      std::make_unique<ChildProcess>(command, TaskOutput{keep, [] {}}, TaskOutput{keep, [] {}});
  made.process->end_input();
  return made;
}

void PredictedCommand::take_exits() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    ChildProcess& process = *copies_[i].process;
    if (!process.running() || !process.has_ended()) continue;
    process.send_signal(SIGKILL);  // what the copy has started and left running
    process.reap();
    take_pace(copies_[i]);  // told before it ended
    judge(i);
  }
}

void PredictedCommand::judge(std::size_t copy) {
  const Copy& it = copies_[copy];
  if (ending_ || it.pace) return;
  const ExitStatus& status = it.process->status();
  std::string why = fmt::format(
      "{} {} ({}); what workers on this machine do to each other is not predicted. ",
      it.process->name(),
      status.good() ? "ended before it had made its ten steps" : "that ran at once failed",
      status.str());
  why += it.written->empty() ? "It has written nothing."
                             : "Its last lines:" + end_of_output(*it.written);
  give_up(why);
}

void PredictedCommand::tell_paces() {
  if (copies_.empty() || ending_) return;
  if (!std::ranges::all_of(copies_, [](const Copy& copy) { return copy.pace.has_value(); })) return;
  CopiesMessage paces{.kind = MessageKind::kPaces};
  for (const Copy& copy : copies_) paces.paces.push_back(*copy.pace);
  answer_ = std::move(paces);
  end_copies(kCopyEndsWithin);
}

void PredictedCommand::give_up(const std::string& why) {
  answer_ = {.kind = MessageKind::kWhy, .why = why};
  end_copies({});
}

void PredictedCommand::answer(const CopiesMessage& message) {
  copies_.clear();
  until_.reset();
  send_message(asker_.get(), text_of(message), -1);
  asker_ = FileDescriptor();
}

// Copies whose connections end train no more. SIGTERM follows after `within`, and then SIGKILL; at
// once if the copies were already asked to end.
void PredictedCommand::end_copies(Duration within) {
  for (Copy& copy : copies_) copy.socket = FileDescriptor();
  ending_ = true;
  until_ = real_now() + within;
}

void PredictedCommand::end_in_time() {
  if (!until_ || real_now() < *until_) return;
  until_.reset();
  if (!any_copy()) return;
  if (!ending_) {
    return give_up(
        fmt::format("{} copies at once did not make their ten steps in time; what workers on this "
                    "machine do to each other is not predicted (--time-limit gives them longer)",
                    copies_.size()));
  }
  const int signal = std::exchange(asked_to_end_, true) ? SIGKILL : SIGTERM;
  for (Copy& copy : copies_) copy.process->send_signal(signal);
  until_ = real_now() + kCopyEndsWithin;
}

bool PredictedCommand::any_copy() const {
  return std::ranges::any_of(copies_, [](const Copy& copy) { return copy.process->running(); });
}

}  // namespace paceline
