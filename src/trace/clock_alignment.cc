#include "trace/clock_alignment.h"

#include <algorithm>
#include <optional>

namespace paceline {
namespace {

// Of two quartzes.
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

// The first task that reads the clock of each task.
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

// What is wanted of the clocks can be had, since the true ones have it; and who is moved, by no
// more than it takes, comes at most so much nearer to the others' uncertainty.
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

}  // namespace paceline
