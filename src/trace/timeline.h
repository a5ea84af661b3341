// The events of a task's threads, in memory that is laid out before the first step.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "trace/clock_samples.h"

namespace paceline {

/// The part that many events have in common. Labels are made before the first step.
struct TimelineLabel {
  std::string name;      // "matmul"
  std::string category;  // "kernel"
  /// Shown with each event: "node" → "layer1/matmul".
  std::vector<std::pair<std::string, std::string>> arguments;
};

/// What distinguishes a frame from others of the same message, on both sides of a connection.
struct FrameMark {
  std::int64_t piece = -1;  // −1: it is no frame
  std::uint64_t offset = 0, step = 0;
  bool operator==(const FrameMark&) const = default;
};

/// Records a task's own steps from `first_step` to before `end_step`. Any thread may add events.
/// Adding allocates nothing, and events for which there is no room are only counted. A caller that
/// adds events first asks recording(), which costs one comparison if recording is off.
class Timeline {
 public:
  struct Event {
    const TimelineLabel* label = nullptr;
    TimePoint begin, end;
    std::int64_t step = 0;
    std::int64_t bytes = -1;  // −1: none
    pid_t thread = 0;
    FrameMark frame = {};
  };
  static constexpr std::size_t kMostEvents = std::size_t{1} << 19;  // or 8192 a step, if fewer

  Timeline(std::int64_t first_step, std::int64_t end_step, std::size_t most_events = kMostEvents);

  /// Makes a label, which is valid as long as the timeline. Allocates.
  const TimelineLabel* label(TimelineLabel label);
  /// Names the calling thread. Allocates.
  void name_thread(const std::string& name);

  /// Tells the timeline that the task has reached this own step. Steps never go back.
  void begin_step(std::int64_t step);
  bool recording() const {
    return shows(step_.load(std::memory_order_relaxed)) ||
           held_.load(std::memory_order_relaxed) > 0;
  }
  /// True for a step that was asked for.
  bool shows(std::int64_t step) const { return step >= first_step_ && step < end_step_; }
  /// Adds or removes one reason to go on recording: a ps records until all workers have made these
  /// steps.
  void hold() { ++held_; }
  void let_go() { --held_; }
  void add(const TimelineLabel* label, TimePoint begin, TimePoint end, std::int64_t bytes = -1,
           const FrameMark& frame = {});
  void add(const Event& event);
  /// The task's own step. −1 before the first one.
  std::int64_t step() const { return step_.load(std::memory_order_relaxed); }
  /// Makes a row that is no thread's, for example of a device, and returns the number that stands
  /// for it in Event::thread. Allocates.
  pid_t add_row(const std::string& name);

  /// Returns the events that were added so far, in no order.
  std::vector<Event> events() const;
  std::size_t dropped() const;
  /// Returns the name of a thread; empty if it was not named.
  std::string name_of_thread(pid_t thread) const;

  /// Tells which task ("worker:1") the link's `peer` is. Allocates.
  void name_peer(const std::string& peer, const std::string& task);
  /// Returns the name of the task behind `peer`; the link's own name if the task is unknown.
  std::string task_of(const std::string& peer) const;

  /// True while clocks should be compared: from some steps before the first recorded step until one
  /// step after the last.
  bool wants_clocks() const {
    const std::int64_t step = step_.load(std::memory_order_relaxed);
    return step + kClocksBefore >= first_step_ && step <= end_step_;
  }
  /// Adds the sample of a round trip to a task. Allocates if it is the first one to this task.
  void add_clock_sample(const std::string& task, const ClockSample& sample);
  /// Returns the samples of each task.
  std::map<std::string, ClockSamples> clock_samples() const;

 private:
  struct Place {
    std::atomic<bool> filled{false};
    Event event;
  };

  static constexpr std::int64_t kClocksBefore = 16;  // steps

  const std::int64_t first_step_, end_step_;
  std::atomic<std::int64_t> step_{-1};
  std::atomic<int> held_{0};
  std::vector<Place> places_;
  std::atomic<std::size_t> next_{0};
  mutable std::mutex mutex_;
  std::deque<TimelineLabel> labels_;
  std::vector<std::pair<pid_t, std::string>> threads_;
  pid_t last_row_ = 1 << 22;                  // the numbers of threads are below this
  std::map<std::string, std::string> peers_;  // tasks, by the link's name for them
  std::map<std::string, ClockSamples> clocks_;
};

/// Records a block as one event. `timeline` may be null.
class TimelineScope {
 public:
  TimelineScope(Timeline* timeline, const TimelineLabel* label, std::int64_t bytes = -1,
                const FrameMark& frame = {})
      : timeline_(timeline != nullptr && timeline->recording() ? timeline : nullptr),
        label_(label),
        bytes_(bytes),
        frame_(frame) {
    if (timeline_ != nullptr) [[unlikely]]
      begin_ = std::chrono::steady_clock::now();
  }
  ~TimelineScope() {
    if (timeline_ == nullptr) [[likely]]
      return;
    timeline_->add(label_, begin_, std::chrono::steady_clock::now(), bytes_, frame_);
  }
  TimelineScope(const TimelineScope&) = delete;
  TimelineScope& operator=(const TimelineScope&) = delete;

 private:
  Timeline* const timeline_;
  const TimelineLabel* const label_;
  const std::int64_t bytes_;
  const FrameMark frame_;
  TimePoint begin_{};
};

}  // namespace paceline
