// Files are first read into the spans of all tasks. Everything else is a function of these spans
// (match_frames, align_clocks, put_causes_first, arrows_of, CriticalPaths).
#include "trace/job_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace paceline {
namespace {

// The most by which the quartz clocks of two machines drift apart: 50 µs a second.
constexpr double kMostDriftOfMachines = 5e-5;

TimePoint at_time(std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); }

std::optional<ClockLine> measured_line(const TaskTimeline& from, const TaskTimeline& to) {
  const auto samples = from.clock_samples.find(to.task);
  if (samples == from.clock_samples.end() || samples->second.empty()) return {};
  TimePoint begin = samples->second.front().at, end = begin;
  if (!from.spans.empty()) {
    begin = at_time(from.spans.front().begin);
    end = at_time(std::ranges::max(from.spans, {}, &TimelineSpan::end).end);
  }
  const bool one_machine = !from.machine.empty() && from.machine == to.machine;
  return estimate_clock(samples->second, begin, end, one_machine ? 0 : kMostDriftOfMachines);
}

std::optional<ClockLine> line_between(const TaskTimeline& from, const TaskTimeline& to) {
  if (from.shares_clock(to)) return ClockLine();
  const std::optional<ClockLine> there = measured_line(from, to), back = measured_line(to, from);
  if (back && (!there || back->uncertainty < there->uncertainty)) return back->inverse();
  return there;
}

// Returns, for each task, the first task that reads the same clock.
std::vector<std::size_t> owners_of_clocks(std::span<const TaskTimeline> tasks) {
  std::vector<std::size_t> owners(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto owner = std::ranges::find_if(
        tasks.first(i), [&](const TaskTimeline& other) { return other.shares_clock(tasks[i]); });
    owners[i] = std::size_t(owner - tasks.begin());
  }
  return owners;
}

}  // namespace

std::vector<TaskClock> align_clocks(std::span<const TaskTimeline> tasks) {
  std::vector<TaskClock> clocks(tasks.size());
  std::vector<bool> settled(tasks.size());
  if (tasks.empty()) return clocks;
  clocks.front() = {ClockLine(), true, true};
  while (true) {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (settled[i] || !clocks[i].is_known) continue;
      if (!next || clocks[i].line.uncertainty < clocks[*next].line.uncertainty) next = i;
    }
    if (!next) return clocks;
    settled[*next] = true;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto step = settled[i] ? std::nullopt : line_between(tasks[i], tasks[*next]);
      if (!step) continue;
      const ClockLine line = step->then(clocks[*next].line);
      if (clocks[i].is_known && clocks[i].line.uncertainty <= line.uncertainty) continue;
      clocks[i] = {line, tasks[i].shares_clock(tasks.front()), true};
    }
  }
}

// Clocks can be moved so, since with the true times every frame arrives later than it was sent.
// Each move is as large as one frame requires. The uncertainty of a clock grows by as much as the
// clock is moved.
void put_causes_first(std::span<const TaskTimeline> tasks, std::span<const FrameTrip> trips,
                      std::vector<TaskClock>& clocks) {
  const std::vector<std::size_t> owners = owners_of_clocks(tasks);
  std::vector<Duration> moved(tasks.size());
  const auto time_of = [&](SpanPlace place) {
    return clocks[place.task].line.there(at_time(tasks[place.task].spans[place.span].begin)) +
           moved[owners[place.task]];
  };
  bool changed = true;
  for (std::size_t pass = 0; changed && pass <= tasks.size(); ++pass) {
    changed = false;
    for (const FrameTrip& trip : trips) {
      const Duration early = time_of(trip.sent) - time_of(trip.received);
      const Duration doubt =
          clocks[trip.sent.task].line.uncertainty + clocks[trip.received.task].line.uncertainty;
      if (early <= Duration() || early > doubt) continue;
      moved[owners[trip.received.task]] += early;
      changed = true;
    }
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Duration by = moved[owners[i]] - moved.front();
    clocks[i].line.offset += by;
    clocks[i].line.uncertainty += std::chrono::abs(by);
  }
}

void change_to_one_clock(std::vector<TaskTimeline>& tasks, std::span<const TaskClock> clocks) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto changed = [&](std::int64_t time) {
      return clocks[i].line.there(at_time(time)).time_since_epoch().count();
    };
    for (TimelineSpan& span : tasks[i].spans) {
      span.begin = changed(span.begin);
      span.end = changed(span.end);
    }
  }
}

namespace {

// No step waits for these messages. "frame" stands for messages without a name of their own.
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
    // What a device does while the host waits for it is part of the wait.
    const bool works =
        label.category != "frame" && label.category != "on device" && !waits_for_towers(label);
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

// Follows the path backwards. The walk stands at a time in one thread of a task, and has already
// reported all later parts of the step.
class CriticalPaths::Walk {
 public:
  Walk(const CriticalPaths& all, SpanPlace step)
      : all_(all), task_(step.task), thread_(span(step.span).thread), time_(span(step.span).end) {
    begin_ = span(step.span).begin;
  }
  std::vector<PathPart> parts() {
    // Each turn takes the path to an earlier time, or to another task.
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
  // Looks at the latest span of the thread and at its parents: `span` is the innermost of them that
  // does not end before `end`, and `ended` the outermost that does. Each may be kNone.
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
  // Returns the last frame that had arrived by now; kNone if there is none.
  std::size_t last_arrival() const {
    const auto after = std::ranges::lower_bound(index().handled, time_, {},
                                                [&](std::size_t k) { return span(k).begin; });
    return after == index().handled.begin() ? kNone : *std::prev(after);
  }
  // Returns the last work that had ended by now; kNone if there is none.
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
  // The wait ended with the last frame that arrived during it, unless the thread has done something
  // since. The thread that handles a frame may wake the waiting thread before it is done with the
  // frame.
  bool follow_arrival(std::int64_t since) {
    const std::size_t arrival = last_arrival();
    if (arrival == kNone || span(arrival).end <= since) return false;
    go_to(std::min(span(arrival).end, time_), name() + " waits");
    thread_ = span(arrival).thread;
    go_to(span(arrival).begin, name() + " receives");
    follow_frame(arrival);
    return true;
  }
  // In a gap the thread did nothing: the path goes on at the last work that ended in the task.
  void leave_gap() {
    if (!follow_work(begin_)) go_to(begin_, name() + " other");
  }
  // Goes to the last work that ended in the task, if it ended after `since`. Returns false if it
  // did not.
  bool follow_work(std::int64_t since) {
    const std::size_t last = last_work();
    if (last == kNone || span(last).end <= since) return false;
    go_to(span(last).end, name() + " other");
    thread_ = span(last).thread;
    return true;
  }
  // The walk now stands at the begin of the span that handles a frame. If the thread did something
  // else after the frame had been sent, the frame waited for the thread, or arrived behind an
  // earlier frame.
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
  std::vector<PathPart> parts_;  // from the last part to the first
};

std::vector<PathPart> CriticalPaths::path_of(SpanPlace step) const {
  return Walk(*this, step).parts();
}

namespace {

constexpr std::array<std::string_view, 2> kPushes = {"chunk", "contribution"};
constexpr std::array<std::string_view, 4> kPulls = {"values", "row_values", "taken", "copied"};
constexpr std::array<std::string_view, 5> kAllReduce = {"partial_sum", "in_place",
                                                        "contributed_rows", "sums_whole", "commit"};

bool is_one_of(std::span<const std::string_view> messages, std::string_view message) {
  return std::ranges::find(messages, message) != messages.end();
}

class Arrows {
 public:
  Arrows(std::span<const TaskTimeline> tasks, std::span<const FrameTrip> trips) : tasks_(tasks) {
    for (std::size_t i = 0; i < tasks.size(); ++i) sort_spans(i);
    for (const FrameTrip& trip : trips) sort_trip(trip);
    for (auto& [to, pulls] : pulls_) {
      std::ranges::sort(pulls, {}, [&](const FrameTrip& trip) { return span(trip.sent).begin; });
    }
  }
  std::vector<TimelineArrow> take() {
    for (const auto& [piece, push] : pushes_) add_push(push);
    return std::move(arrows_);
  }

 private:
  const TimelineSpan& span(SpanPlace place) const { return tasks_[place.task].spans[place.span]; }

  void sort_spans(std::size_t i) {
    const TaskTimeline& task = tasks_[i];
    for (std::size_t k = 0; k < task.spans.size(); ++k) {
      const TimelineLabel& label = task.label_of(task.spans[k]);
      if (label.category == "rule") {
        rules_[{i, std::string(argument_of(label, "piece"))}].push_back({i, k});
      } else if (label.category == "need") {
        needs_[{i, std::string(argument_of(label, "variable"))}].push_back({i, k});
      }
    }
  }
  void sort_trip(const FrameTrip& trip) {
    const TaskTimeline& sender = tasks_[trip.sent.task];
    const TimelineSpan& sent = span(trip.sent);
    const std::string_view message = message_of(sender.label_of(sent), "send");
    if (is_one_of(kPushes, message)) {
      // Trips come in order, so that the last frame of a piece stays in the map.
      pushes_[{trip.sent.task, trip.received.task, sent.frame.piece, sent.frame.step}] = trip;
    } else if (is_one_of(kPulls, message)) {
      pulls_[{trip.sent.task, trip.received.task, sent.frame.piece}].push_back(trip);
    } else if (is_one_of(kAllReduce, message)) {
      arrows_.push_back({std::string(message), {begin_of(trip.sent), begin_of(trip.received)}});
      put_in_order(arrows_.back());
    }
  }
  TimelineArrow::End begin_of(SpanPlace place) const { return {place, span(place).begin}; }

  void add_push(const FrameTrip& push) {
    const SpanPlace* const rule = rule_of(push);
    if (rule == nullptr) return;
    TimelineArrow arrow{"push", {begin_of(push.sent), begin_of(*rule)}};
    if (const FrameTrip* const pull = pull_after(push, *rule)) {
      arrow.ends.push_back(begin_of(pull->received));
      const std::string_view variable =
          argument_of(tasks_[rule->task].label_of(span(*rule)), "variable");
      add_need(*pull, std::string(variable), arrow);
    }
    put_in_order(arrow);
    arrows_.push_back(std::move(arrow));
  }
  // Returns the rule that runs within the handling of the frame, else the next rule of the piece;
  // null if there is none.
  const SpanPlace* rule_of(const FrameTrip& push) const {
    const TimelineSpan& received = span(push.received);
    const auto rules = rules_.find({push.received.task, std::to_string(received.frame.piece)});
    if (rules == rules_.end()) return nullptr;
    const auto first = std::ranges::lower_bound(rules->second, received.begin, {},
                                                [&](SpanPlace place) { return span(place).begin; });
    for (auto rule = first; rule != rules->second.end(); ++rule) {
      if (span(*rule).begin > received.end) break;
      if (span(*rule).thread == received.thread) return &*rule;
    }
    return first == rules->second.end() ? nullptr : &*first;
  }
  const FrameTrip* pull_after(const FrameTrip& push, SpanPlace rule) const {
    const auto pulls =
        pulls_.find({push.received.task, push.sent.task, span(push.received).frame.piece});
    if (pulls == pulls_.end()) return nullptr;
    const auto pull =
        std::ranges::lower_bound(pulls->second, span(rule).begin, {},
                                 [&](const FrameTrip& trip) { return span(trip.sent).begin; });
    return pull == pulls->second.end() ? nullptr : &*pull;
  }
  void add_need(const FrameTrip& pull, const std::string& variable, TimelineArrow& arrow) const {
    const auto needs = needs_.find({pull.received.task, variable});
    if (needs == needs_.end()) return;
    const std::int64_t there = span(pull.received).begin;
    const auto need = std::ranges::upper_bound(needs->second, there, {},
                                               [&](SpanPlace place) { return span(place).end; });
    if (need == needs->second.end()) return;
    arrow.ends.push_back({*need, std::max(span(*need).begin, there)});
  }
  // Clocks that do not quite agree, or a false match, must not make an arrow point backwards.
  static void put_in_order(TimelineArrow& arrow) {
    for (std::size_t i = 1; i < arrow.ends.size(); ++i) {
      arrow.ends[i].at = std::max(arrow.ends[i].at, arrow.ends[i - 1].at);
    }
  }

  const std::span<const TaskTimeline> tasks_;
  // For each task and its piece or variable: the spans, ordered by their begin.
  std::map<std::pair<std::size_t, std::string>, std::vector<SpanPlace>> rules_, needs_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t, std::uint64_t>, FrameTrip> pushes_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, std::vector<FrameTrip>> pulls_;
  std::vector<TimelineArrow> arrows_;
};

}  // namespace

std::vector<TimelineArrow> arrows_of(std::span<const TaskTimeline> tasks,
                                     std::span<const FrameTrip> trips) {
  return Arrows(tasks, trips).take();
}

namespace {

// Returns a number by which workers come before ps tasks, each in the order of their indices.
int rank_of_task(const std::string& task) {
  const std::size_t colon = task.find(':');
  const int index = colon == std::string::npos ? 0 : std::atoi(task.c_str() + colon + 1);
  return task.starts_with("ps") ? 100'000 + index : index;
}

std::vector<JobTimeline::Step> steps_of(const std::vector<TaskTimeline>& tasks,
                                        const std::vector<FrameTrip>& trips) {
  const CriticalPaths paths(tasks, trips);
  std::vector<JobTimeline::Step> steps;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    for (std::size_t k = 0; k < tasks[i].spans.size(); ++k) {
      const TimelineLabel& label = tasks[i].label_of(tasks[i].spans[k]);
      if (label.category != "step" || label.name != "step") continue;
      steps.push_back({tasks[i].task, paths.path_of({i, k})});
    }
  }
  return steps;
}

std::string clock_text(const TaskTimeline& task, const TaskClock& clock,
                       const std::string& reference) {
  if (!clock.is_known) {
    return fmt::format("{}: no round trip leads to {}'s clock; its times are as they are",
                       task.task, reference);
  }
  const double ahead = -double(clock.line.offset.count()) * 1e-9;
  return fmt::format("{}: its clock is {:.6f} s {} that of {}, \u00b1 {:.1f} \u00b5s", task.task,
                     std::abs(ahead), ahead < 0 ? "behind" : "ahead of", reference,
                     double(clock.line.uncertainty.count()) * 1e-3);
}

}  // namespace

JobTimeline merge_timelines(std::vector<TaskTimeline> tasks) {
  JobTimeline job;
  std::ranges::stable_sort(tasks, {}, [](const auto& task) { return rank_of_task(task.task); });
  const std::vector<FrameTrip> trips = match_frames(tasks);
  job.clocks = align_clocks(tasks);
  put_causes_first(tasks, trips, job.clocks);
  change_to_one_clock(tasks, job.clocks);
  job.arrows = arrows_of(tasks, trips);
  job.steps = steps_of(tasks, trips);
  job.tasks = std::move(tasks);
  return job;
}

std::string summary_of(const JobTimeline& job) {
  std::string text;
  for (std::size_t i = 0; i < job.tasks.size(); ++i) {
    if (job.clocks[i].is_same) continue;
    text += clock_text(job.tasks[i], job.clocks[i], job.tasks.front().task) + "\n";
  }
  if (text.empty() && job.tasks.size() > 1) text = "All tasks read one clock.\n";
  std::map<std::string, std::int64_t> times;
  std::int64_t all = 0;
  for (const JobTimeline::Step& step : job.steps) {
    for (const PathPart& part : step.path) {
      times[part.what] += part.end - part.begin;
      all += part.end - part.begin;
    }
  }
  std::vector<std::pair<std::int64_t, std::string>> largest;
  largest.reserve(times.size());
  for (const auto& [what, time] : times) largest.emplace_back(time, what);
  std::ranges::sort(largest, std::greater());
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(largest.size(), kShown); ++i) {
    text += fmt::format("{}{} {:.0f}%", i == 0 ? "Critical path of the steps: " : ", ",
                        largest[i].second, 100 * double(largest[i].first) / double(all));
  }
  return largest.empty() ? text : text + "\n";
}

std::string merge_timeline_files(const std::vector<std::string>& parts, const std::string& path) {
  std::vector<TaskTimeline> tasks;
  tasks.reserve(parts.size());
  for (const std::string& part : parts) tasks.push_back(read_task_timeline(part));
  const JobTimeline job = merge_timelines(std::move(tasks));
  write_job_timeline(path, job);
  return summary_of(job);
}

}  // namespace paceline
