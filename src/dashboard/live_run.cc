#include "dashboard/live_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "explain/explain.h"
#include "explain/report_window.h"

namespace paceline {
namespace {

// Speeds are measured over this many seconds: short enough to follow a change, and long enough not
// to jump with each step.
constexpr double kRecentSeconds = 10;

const TaskReport& entry(const TaskProgress& progress) { return progress.report.tasks.front(); }

double bytes(const TaskReport& task, std::optional<double> LinkReport::*per_step) {
  double sum = 0;
  for (const LinkReport& link : task.links) sum += (link.*per_step).value_or(0);
  return sum * double(task.steps);
}

// Returns how many of the task's timed seconds the activity has taken so far.
double spent(const TaskReport& task, const std::string& activity) {
  for (const auto& [name, share] : task.share) {
    if (name == activity) return share * task.seconds.value_or(0);
  }
  return 0;
}

std::vector<std::pair<std::string, double>> share_between(const TaskReport& before,
                                                          const TaskReport& now) {
  std::vector<std::pair<std::string, double>> share;
  double sum = 0;
  for (const auto& [name, part] : now.share) {
    share.emplace_back(name, std::max(0.0, spent(now, name) - spent(before, name)));
    sum += share.back().second;
  }
  if (sum <= 0) return now.share;
  for (auto& [name, part] : share) part /= sum;
  return share;
}

// The mean of those values that are known.
class Mean {
 public:
  void add(std::optional<double> value) {
    if (!value) return;
    sum_ += *value;
    ++count_;
  }
  std::optional<double> value() const {
    if (count_ == 0) return std::nullopt;
    return sum_ / count_;
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

class MeanShare {
 public:
  void add(const std::vector<std::pair<std::string, double>>& share) {
    if (share.empty()) return;
    if (sum_.empty()) sum_ = share;
    for (std::size_t i = 0; count_ > 0 && i < std::min(sum_.size(), share.size()); ++i) {
      sum_[i].second += share[i].second;
    }
    ++count_;
  }
  std::vector<std::pair<std::string, double>> value() const {
    auto mean = sum_;
    for (auto& [name, part] : mean) part /= count_;
    return mean;
  }

 private:
  std::vector<std::pair<std::string, double>> sum_;
  int count_ = 0;
};

void add_to(std::optional<double>& sum, std::optional<double> value) {
  if (value) sum = sum.value_or(0) + *value;
}

}  // namespace

bool is_worker(const std::string& task) { return task.starts_with("worker:"); }

LiveRun::LiveRun(RunAbout about, TimePoint now) : about_(std::move(about)), begun_(now) {
  for (const std::string& task : about_.tasks) tasks_[task];
}

double LiveRun::seconds(TimePoint now) const {
  return std::chrono::duration<double>(now - begun_).count();
}

void LiveRun::heard(const std::string& task, TaskProgress progress, TimePoint now) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end() || progress.report.tasks.size() != 1) return;
  // A ps that serves any job does not know its own name.
  progress.report.tasks.front().task = task;
  Task& known = found->second;
  const bool again = known.progress && progress.at < known.progress->at;  // it was restarted
  if (again) known.before.clear();
  const bool moved = !known.progress || entry(progress).steps != entry(*known.progress).steps;
  if (moved) known.moved = now;
  known.heard = now;
  known.progress = progress;
  if (!known.before.empty() && known.before.back().at == progress.at) return;
  known.before.push_back(std::move(progress));
  while (known.before.size() > 2 && known.progress->at - known.before[1].at >= kRecentSeconds) {
    known.before.pop_front();
  }
}

RecentTask LiveRun::recent(const Task& task) {
  RecentTask recent;
  if (task.before.empty()) return recent;
  const TaskReport& now = entry(task.before.back());
  const TaskReport& then = entry(task.before.front());
  recent.share = share_between(then, now);
  const double seconds = task.before.back().at - task.before.front().at;
  if (seconds <= 0) return recent;
  const double steps = double(now.steps - then.steps);
  recent.steps_per_s = steps / seconds;
  if (now.steps_per_s && *now.steps_per_s > 0 && now.examples_per_s) {
    recent.examples_per_s = *recent.steps_per_s * *now.examples_per_s / *now.steps_per_s;
  }
  recent.staleness = now.staleness_mean;
  if (steps > 0 && now.staleness_mean && then.staleness_mean) {
    const double updates =
        *now.staleness_mean * double(now.steps) - *then.staleness_mean * double(then.steps);
    recent.staleness = std::max(0.0, updates / steps);
  }
  if (now.links.empty()) return recent;
  recent.sent = std::max(
      0.0, (bytes(now, &LinkReport::step_sent) - bytes(then, &LinkReport::step_sent)) / seconds);
  recent.received = std::max(
      0.0,
      (bytes(now, &LinkReport::step_received) - bytes(then, &LinkReport::step_received)) / seconds);
  return recent;
}

LiveTask LiveRun::live(const Task& task, TimePoint now) {
  LiveTask live;
  live.recent = recent(task);
  if (!task.progress) return live;
  live.heard_s = std::chrono::duration<double>(now - task.heard).count();
  live.still_s = std::chrono::duration<double>(now - task.moved).count();
  live.lines = task.progress->lines;
  return live;
}

RunPoint LiveRun::point(TimePoint now) const {
  RunPoint point;
  point.seconds = seconds(now);
  MeanShare workers, servers;
  Mean staleness;
  for (const auto& [name, task] : tasks_) {
    const RecentTask recent = LiveRun::recent(task);
    (is_worker(name) ? workers : servers).add(recent.share);
    if (!is_worker(name)) continue;
    add_to(point.steps_per_s, recent.steps_per_s);
    add_to(point.sent, recent.sent);
    add_to(point.received, recent.received);
    staleness.add(recent.staleness);
  }
  for (const std::string& name : about_.tasks) {
    const Task& task = tasks_.at(name);
    if (!task.progress || !is_worker(name)) continue;
    for (const auto& [tag, value] : task.progress->numbers) point.numbers.emplace(tag, value);
    if (!point.loss) point.loss = task.progress->report.last_loss;
  }
  point.worker_share = workers.value();
  point.ps_share = servers.value();
  point.staleness = staleness.value();
  return point;
}

std::optional<double> LiveRun::examples_per_s() const {
  std::optional<double> sum;
  for (const auto& [name, task] : tasks_) add_to(sum, recent(task).examples_per_s);
  return sum;
}

void LiveRun::add_point(TimePoint now) {
  if (++skipped_ < every_) return;
  skipped_ = 0;
  history_.push_back(point(now));
  if (history_.size() < kMostPoints) return;
  std::size_t kept = 0;
  for (std::size_t i = 1; i < history_.size(); i += 2) history_[kept++] = std::move(history_[i]);
  history_.resize(kept);
  every_ *= 2;
}

Report LiveRun::report() const {
  std::vector<Report> reports;
  for (const auto& [name, task] : tasks_) {
    if (task.progress) reports.push_back(task.progress->report);
  }
  return merge(reports);
}

// Explains the last seconds. A run that has ended is explained as a whole.
std::string LiveRun::cause(TimePoint now) const {
  if (std::string silent = silence(now); !silent.empty()) return silent;
  bool window = false, any = false;
  for (const auto& [name, task] : tasks_) {
    if (!task.progress) continue;
    any = true;
    window = window || task.before.front().at < task.progress->at;
  }
  if (!any) return "";
  if (!window) return explanation(report());
  std::vector<Report> before;
  for (const auto& [name, task] : tasks_) {
    if (task.progress) before.push_back(task.before.front().report);
  }
  return explanation(report_between(merge(before), report()));
}

// If all tasks seem silent, the chief itself stood still, and none is named.
std::string LiveRun::silence(TimePoint now) const {
  std::string silent;
  bool all = true;
  for (const std::string& name : about_.tasks) {
    const Task& task = tasks_.at(name);
    if (!task.progress) continue;
    const bool is_silent = now - task.heard > kSilent;
    all = all && is_silent;
    if (!is_silent || !silent.empty()) continue;
    silent = fmt::format(
        "{} has said nothing for {:.0f} s: a signal or a debugger stopped it, it has ended, or its "
        "host "
        "or network does not answer.",
        name, std::chrono::duration<double>(now - task.heard).count());
  }
  return all ? "" : silent;
}

}  // namespace paceline
