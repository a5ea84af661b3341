#include "trace/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace paceline {
namespace {

// No step waits for these; messages without a name of their own are frames.
constexpr std::array<std::string_view, 3> kBesideTheSteps = {"handled", "job_state", "frame"};

bool is_waited_for(std::string_view message) {
  return !message.empty() && std::ranges::find(kBesideTheSteps, message) == kBesideTheSteps.end();
}

bool may_wait(const TimelineLabel& label) {
  if (label.category == "need" || label.category == "place") return true;
  constexpr std::array<std::string_view, 3> kWorks = {"step", "tower", "input"};
  return label.category == "step" && std::ranges::find(kWorks, label.name) == kWorks.end();
}

bool waits_for_towers(const TimelineLabel& label) { return label.name == "wait for the towers"; }

std::string what_it_does(const TimelineLabel& label) {
  if (label.category == "kernel" || label.category == "device") return "kernels";
  if (label.category == "rule") return "applies rules";
  if (label.category == "ready") return "sends";
  if (label.category == "frame") return label.name.starts_with("send") ? "sends" : "receives";
  if (label.name == "step" || label.name == "tower") return "between kernels";
  if (label.category == "need" || label.category == "place") return "waits";
  return label.name;
}

}  // namespace

CriticalPaths::CriticalPaths(std::span<const TaskTimeline> tasks, std::span<const FrameTrip> trips)
    : tasks_(tasks), trips_(trips), index_(tasks.size()) {
  for (std::size_t i = 0; i < tasks.size(); ++i) index(i);
}

void CriticalPaths::index(std::size_t task) {
  const TaskTimeline& from = tasks_[task];
  Task& to = index_[task];
  to.threads.resize(from.threads.size());
  to.parents.assign(from.spans.size(), kNone);
  to.trips.assign(from.spans.size(), kNone);
  std::vector<std::vector<std::size_t>> open(from.threads.size());
  for (std::size_t k = 0; k < from.spans.size(); ++k) {
    const TimelineSpan& span = from.spans[k];
    std::vector<std::size_t>& around = open[span.thread];
    while (!around.empty() && from.spans[around.back()].end < span.end) around.pop_back();
    if (!around.empty()) to.parents[k] = around.back();
    around.push_back(k);
    to.threads[span.thread].spans.push_back(k);
    const TimelineLabel& label = from.label_of(span);
    const bool works = label.category != "frame" && !waits_for_towers(label);
    if (works && span.end > span.begin) to.worked.push_back(k);
  }
  for (std::size_t i = 0; i < trips_.size(); ++i) {
    const SpanPlace at = trips_[i].received;
    if (at.task != task) continue;
    if (!is_waited_for(message_of(from.label_of(from.spans[at.span]), "receive"))) continue;
    to.trips[at.span] = i;
    to.handled.push_back(at.span);
    if (from.spans[at.span].end > from.spans[at.span].begin) to.worked.push_back(at.span);
  }
  const auto end_of = [&](std::size_t k) { return from.spans[k].end; };
  std::ranges::stable_sort(to.handled, {}, [&](std::size_t k) { return from.spans[k].begin; });
  std::ranges::stable_sort(to.worked, {}, end_of);
}

// Stands on a thread of a task at a time, of which it has told all that follows.
class CriticalPaths::Walk {
 public:
  Walk(const CriticalPaths& all, SpanPlace step)
      : all_(all), task_(step.task), thread_(span(step.span).thread), time_(span(step.span).end) {
    begin_ = span(step.span).begin;
  }
  std::vector<PathPart> parts() {
    // Each turn takes the path to an earlier time, or on to another task.
    int turns = 0;
    while (time_ > begin_ && turns < kMostTurns) {
      const std::int64_t before = time_;
      turn();
      turns = time_ < before ? 0 : turns + 1;
    }
    if (time_ > begin_) go_to(begin_, name() + " other");
    std::ranges::reverse(parts_);
    return std::move(parts_);
  }

 private:
  static constexpr int kMostTurns = 64;  // without coming to an earlier time

  const TaskTimeline& task() const { return all_.tasks_[task_]; }
  const Task& index() const { return all_.index_[task_]; }
  const TimelineSpan& span(std::size_t k) const { return task().spans[k]; }
  const std::string& name() const { return task().task; }

  void go_to(std::int64_t time, const std::string& what) {
    const std::int64_t begin = std::max(time, begin_);
    if (begin >= time_) return;
    if (!parts_.empty() && parts_.back().what == what) {
      parts_.back().begin = begin;
    } else {
      parts_.push_back({what, begin, time_});
    }
    time_ = begin;
  }
  void go_on_at(std::size_t task, std::size_t thread) {
    task_ = task;
    thread_ = thread;
  }
  // Of the thread's spans that began before now: the innermost one that has not ended before
  // `end`, and the outermost one in it that has, if that was the last.
  struct Around {
    std::size_t span = kNone, ended = kNone;
  };
  Around around(std::int64_t end) const {
    const auto& spans = index().threads[thread_].spans;
    const auto after =
        std::ranges::lower_bound(spans, time_, {}, [&](std::size_t k) { return span(k).begin; });
    Around found{.span = after == spans.begin() ? kNone : *std::prev(after)};
    while (found.span != kNone && span(found.span).end < end) {
      found.ended = found.span;
      found.span = index().parents[found.span];
    }
    return found;
  }
  // The last frame that had arrived by now.
  std::size_t last_arrival() const {
    const auto after = std::ranges::lower_bound(index().handled, time_, {},
                                                [&](std::size_t k) { return span(k).begin; });
    return after == index().handled.begin() ? kNone : *std::prev(after);
  }
  // The last work that had ended by now.
  std::size_t last_work() const {
    const auto after = std::ranges::upper_bound(index().worked, time_, {},
                                                [&](std::size_t k) { return span(k).end; });
    return after == index().worked.begin() ? kNone : *std::prev(after);
  }

  void turn() {
    const Around now = around(time_);
    if (now.span == kNone) return leave_gap();
    const TimelineLabel& label = task().label_of(span(now.span));
    if (waits_for_towers(label) && follow_work(span(now.span).begin)) return;
    const bool to_begin = now.ended == kNone;
    const std::int64_t since = to_begin ? span(now.span).begin : span(now.ended).end;
    if (may_wait(label) && follow_arrival(since)) return;
    go_to(since, fmt::format("{} {}", name(), what_it_does(label)));
    if (to_begin && index().trips[now.span] != kNone) follow_frame(now.span);
  }
  // The wait ended with what arrived last in it, unless the thread has done something since. Who
  // handles a frame may wake the waiting thread before it is done with it.
  bool follow_arrival(std::int64_t since) {
    const std::size_t arrival = last_arrival();
    if (arrival == kNone || span(arrival).end <= since) return false;
    go_to(std::min(span(arrival).end, time_), name() + " waits");
    thread_ = span(arrival).thread;
    go_to(span(arrival).begin, name() + " receives");
    follow_frame(arrival);
    return true;
  }
  // A thread that does nothing: what was done last in the task has led to it.
  void leave_gap() {
    if (!follow_work(begin_)) go_to(begin_, name() + " other");
  }
  // To what was done last in the task, if it ended after `since`.
  bool follow_work(std::int64_t since) {
    const std::size_t last = last_work();
    if (last == kNone || span(last).end <= since) return false;
    go_to(span(last).end, name() + " other");
    thread_ = span(last).thread;
    return true;
  }
  // At the begin of the span that handles a frame. Where the thread did something else when the
  // frame had already been sent, the frame waited for the thread, or came behind the last one.
  void follow_frame(std::size_t handled) {
    const std::size_t parent = index().parents[handled];
    if (parent != kNone && !may_wait(task().label_of(span(parent)))) return;
    const FrameTrip& trip = all_.trips_[index().trips[handled]];
    const TimelineSpan& sent = all_.tasks_[trip.sent.task].spans[trip.sent.span];
    const std::string link = fmt::format("link {} to {}", all_.tasks_[trip.sent.task].task, name());
    const std::size_t before = around(time_ + 1).ended;
    if (before != kNone && span(before).end > sent.end) return go_to(span(before).end, link);
    go_to(sent.begin, link);
    go_on_at(trip.sent.task, sent.thread);
  }

  const CriticalPaths& all_;
  std::size_t task_, thread_;
  std::int64_t time_, begin_ = 0;
  std::vector<PathPart> parts_;  // the last first
};

std::vector<PathPart> CriticalPaths::path_of(SpanPlace step) const {
  return Walk(*this, step).parts();
}

}  // namespace paceline
