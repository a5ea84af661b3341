#include "launch/task_group.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "launch/line_prefixer.h"

namespace paceline {

namespace {

constexpr Duration kShortLife = std::chrono::seconds(10);
constexpr int kMostShortLives = 3;
constexpr int kWrongUsage = 2;
constexpr Duration kReachedWithin = std::chrono::seconds(3);  // another host, by a signal

TimePoint now() { return std::chrono::steady_clock::now(); }

int milliseconds_until(const std::optional<TimePoint>& moment) {
  if (!moment) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*moment - now());
  return int(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

}  // namespace

TaskGroup::TaskGroup(const TaskGroupOptions& options) : options_(options) {}

TaskGroup::~TaskGroup() {
  children_.clear();
  if (result_.interrupted) signals_.drain();
}

void TaskGroup::start(const TaskCommand& command, const std::string& prefix, TaskStarter* host) {
  starts_.push_back({command, prefix, host == nullptr ? &this_host_ : host, now()});
  children_.push_back(begin(starts_.back()));
}

std::unique_ptr<RunningTask> TaskGroup::begin(const Start& start) const {
  const TaskCommand& command = start.command;
  return start.host->start(
      command, prefixed_lines(start.prefix, options_.out),
      prefixed_lines(command.prefixed_errors ? start.prefix : "", options_.err));
}

TaskGroupResult TaskGroup::run() {
  while (any_running() || evaluator_running()) {
    wait_for_events();
    for (const auto& child : children_) child->forward_output();
    take_signal();
    take_stops();
    take_exits();
    after_workers();
    after_ps();
    after_peers();
    after_job();
    after_the_others();
    if (next_ && now() >= *next_) {
      next_.reset();
      asked_ ? kill_all() : ask_all(SIGTERM, options_.stop_within);
    }
  }
  return result_;
}

bool TaskGroup::any_running() const { return any_running(true) || any_running(false); }

bool TaskGroup::any_running(bool ps) const {
  return std::ranges::any_of(children_, [&](const auto& child) {
    return child->running() && child->is_ps() == ps && !child->is_evaluator();
  });
}

bool TaskGroup::evaluator_running() const {
  return std::ranges::any_of(
      children_, [](const auto& child) { return child->running() && child->is_evaluator(); });
}

void TaskGroup::wait_for_events() {
  std::vector<pollfd> watched = {{signals_.fd(), POLLIN, 0}, {child_signals_.fd(), POLLIN, 0}};
  for (const auto& child : children_) {
    if (child->running()) child->watch(watched);
  }
  std::optional<TimePoint> wakes = next_;
  if (stopped_until_ && (!wakes || *stopped_until_ < *wakes)) wakes = stopped_until_;
  poll(watched.data(), watched.size(), milliseconds_until(wakes));
}

void TaskGroup::take_signal() {
  signalfd_siginfo info;
  while (read(signals_.fd(), &info, sizeof info) == sizeof info) {
    if (result_.interrupted) {
      if (now() - interrupted_at_ >= kSameRequest) kill_all();
    } else {
      result_.interrupted = true;
      interrupted_at_ = now();
      ask_all(int(info.ssi_signo), options_.interrupt_within);
    }
  }
}

void TaskGroup::take_stops() {
  child_signals_.drain();
  for (const auto& child : children_) child->note_stops();
}

void TaskGroup::take_exits() {
  std::vector<std::size_t> ended;
  for (std::size_t task = 0; task < children_.size(); ++task) {
    RunningTask& child = *children_[task];
    if (!child.running() || !child.has_ended()) continue;
    child.reap();
    if (child.status().signal == SIGKILL && child.host().empty())
      child.explain(memory_kills_.newly_killed());
    ended.push_back(task);
  }
  // A task that was killed is the cause of those that ended because of it, if both are seen at
  // once.
  std::stable_partition(ended.begin(), ended.end(),
                        [&](std::size_t task) { return children_[task]->status().signal != 0; });
  for (const std::size_t task : ended) judge(task);
}

void TaskGroup::judge(std::size_t task) {
  const RunningTask& child = *children_[task];
  const bool was_stopped = std::ranges::count(result_.stopped, child.name()) > 0;
  if (asked_ || was_stopped || child.status().good()) return;
  if (options_.on_failure == OnFailure::kRestart && start_again(task)) return;
  const TaskFailure failure{child.name(), child.status(), child.host()};
  if (child.is_evaluator()) {
    result_.evaluator_failure = failure;
    if (options_.say) options_.say(child.name() + " has failed: the job goes on without it");
    return;
  }
  if (!result_.first_failure) result_.first_failure = failure;
  if (options_.on_failure != OnFailure::kContinue) return ask_all(SIGTERM, options_.stop_within);
  if (child.is_ps() && any_running(false)) end_without(child);
}

// Its variables are lost, and the workers would wait in vain until somebody starts it again.
void TaskGroup::end_without(const RunningTask& ps) {
  if (options_.say) {
    options_.say(fmt::format(
        "{} has ended ({}), and no worker can go on without its variables: the job is ended "
        "(--on-failure restart would start it again)",
        ps.name(), ps.status().str()));
  }
  ask_all(SIGTERM, options_.stop_within);
}

// Returns false for a task that would fail again: its command is wrong, or its processes end as
// soon as they have begun.
bool TaskGroup::start_again(std::size_t task) {
  const RunningTask& child = *children_[task];
  Start& start = starts_[task];
  const bool short_life = now() - start.at < kShortLife;
  start.short_lives = short_life ? start.short_lives + 1 : 0;
  const bool in_vain = child.status().code == kWrongUsage || start.short_lives > kMostShortLives;
  if (in_vain || !start.host->can_start()) return false;
  if (options_.say) {
    options_.say(
        fmt::format("{} has ended ({}): it is started again", child.name(), child.status().str()));
  }
  start.command.arguments = start.command.restart_arguments;
  start.at = now();
  children_[task] = begin(start);
  return true;
}

void TaskGroup::after_workers() {
  if (workers_over_ || any_running(false)) return;
  workers_over_ = true;
  if (asked_) {
    ask_ps();
  } else {
    // A ps may wait for a worker that failed and does not return, which only the launcher knows.
    next_ = now() + options_.outlives_the_other_job;
  }
}

// They end only when training is over and nobody is connected. A worker that still runs then
// started too late and waits for them in vain.
void TaskGroup::after_ps() {
  const bool has_ps = std::ranges::any_of(children_, &RunningTask::is_ps);
  if (ps_over_ || asked_ || !has_ps || any_running(true)) return;
  ps_over_ = true;
  next_ = now() + options_.outlives_the_other_job;
}

// Whoever has trained with them ends by itself. One that was started again may wait in vain.
void TaskGroup::after_peers() {
  int left = 0, ended_well = 0;
  for (const auto& child : children_) {
    if (child->is_evaluator() || child->is_ps() == options_.workers_meet) continue;
    if (child->running()) ++left;
    if (!child->running() && child->status().good()) ++ended_well;
  }
  if (left > (options_.workers_meet ? 1 : 0) || ended_well == 0) return;
  for (const auto& child : children_) {
    if (!child->is_ps() && !child->is_evaluator()) child->end_input();
  }
}

void TaskGroup::after_job() {
  if (asked_ || any_running()) return;
  next_.reset();
  for (const auto& child : children_) child->end_input();
}

// Workers are waited for first, then ps tasks, and then the evaluator.
bool TaskGroup::is_waited_for(const RunningTask& child) const {
  if (!child.running()) return false;
  return child.is_evaluator() ? !any_running() : child.is_ps() == workers_over_;
}

// A task that is stopped hears nothing. Whoever has stopped all tasks wants them to pause.
void TaskGroup::after_the_others() {
  const bool some_ended = std::ranges::any_of(
      children_, [](const auto& child) { return !child->running() && !child->is_evaluator(); });
  const auto goes_on = [&](const auto& child) {
    return is_waited_for(*child) && !child->stopped();
  };
  const auto is_stopped = [&](const auto& child) {
    return is_waited_for(*child) && child->stopped();
  };
  const bool only_stopped =
      std::ranges::none_of(children_, goes_on) && std::ranges::any_of(children_, is_stopped);
  if (!only_stopped || !(asked_ || some_ended)) return stopped_until_.reset();
  if (!stopped_until_) stopped_until_ = now() + options_.stopped_within;
  if (now() < *stopped_until_) return;
  stopped_until_.reset();
  for (const auto& child : children_) {
    if (!is_stopped(child)) continue;
    result_.stopped.push_back(child->name());
    child->send_signal(SIGKILL);
    if (options_.say) {
      options_.say(child->name() +
                   " was stopped (SIGSTOP) and did not go on after the others: it is ended");
    }
  }
}

// A worker whose ps ended before it would report a lost ps instead of what it was asked to do.
void TaskGroup::ask_all(int signal, Duration within) {
  asked_ = true;
  signal_ = signal;
  within_ = within;
  next_ = now() + within;
  for (const auto& child : children_) {
    if (!child->is_ps()) child->send_signal(signal);
  }
  if (workers_over_) ask_ps();
}

void TaskGroup::ask_ps() {
  if (killed_) return;
  next_ = now() + within_;
  for (const auto& child : children_) {
    if (child->is_ps()) child->send_signal(signal_);
  }
}

void TaskGroup::kill_all() {
  asked_ = true;
  for (const auto& child : children_) killed_ ? child->give_up() : child->send_signal(SIGKILL);
  killed_ = true;
  next_ = now() + kReachedWithin;
}

}  // namespace paceline
