// Wrappers of a device, of a plan's steps and of a link record the timeline (TracedDevice,
// TracedSteps, TracedConnection); a run without a timeline does not create them. Only rules, and
// the parts of a step outside its plan, test a pointer. Frames carry nothing for their arrows: both
// sides know a frame's message, piece, offset and step.
#include "trace/timeline.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace paceline {
namespace {

pid_t this_thread() {
  thread_local const pid_t id = gettid();
  return id;
}

// The places for the events of one step; enough for a large graph or for a ps with many chunks.
constexpr std::int64_t kMostInAStep = 8192;

std::size_t places_for(std::int64_t steps, std::size_t most) {
  const std::int64_t most_steps = std::int64_t(most) / kMostInAStep + 1;
  return std::min(most, std::size_t(std::min(steps, most_steps) * kMostInAStep));
}

}  // namespace

Timeline::Timeline(std::int64_t first_step, std::int64_t end_step, std::size_t most_events)
    : first_step_(first_step),
      end_step_(end_step),
      places_(places_for(end_step - first_step, most_events)) {}

const TimelineLabel* Timeline::label(TimelineLabel label) {
  const std::lock_guard lock(mutex_);
  return &labels_.emplace_back(std::move(label));
}

void Timeline::name_thread(const std::string& name) {
  const std::lock_guard lock(mutex_);
  threads_.emplace_back(this_thread(), name);
}

void Timeline::begin_step(std::int64_t step) {
  std::int64_t before = step_;
  while (before < step && !step_.compare_exchange_weak(before, step)) {
  }
}

void Timeline::add(const TimelineLabel* label, TimePoint begin, TimePoint end, std::int64_t bytes,
                   const FrameMark& frame) {
  add({label, begin, end, step(), bytes, this_thread(), frame});
}

void Timeline::add(const Event& event) {
  const std::size_t at = next_.fetch_add(1, std::memory_order_relaxed);
  if (at >= places_.size()) return;
  places_[at].event = event;
  places_[at].filled.store(true, std::memory_order_release);
}

pid_t Timeline::add_row(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return threads_.emplace_back(++last_row_, name).first;
}

std::vector<Timeline::Event> Timeline::events() const {
  std::vector<Event> events;
  const std::size_t count = std::min(next_.load(), places_.size());
  for (std::size_t i = 0; i < count; ++i) {
    // A thread may be filling this place right now.
    if (places_[i].filled.load(std::memory_order_acquire)) events.push_back(places_[i].event);
  }
  return events;
}

std::size_t Timeline::dropped() const {
  const std::size_t added = next_;
  return added > places_.size() ? added - places_.size() : 0;
}

std::string Timeline::name_of_thread(pid_t thread) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, name] : threads_) {
    if (id == thread) return name;
  }
  return "";
}

void Timeline::name_peer(const std::string& peer, const std::string& task) {
  const std::lock_guard lock(mutex_);
  peers_[peer] = task;
}

std::string Timeline::task_of(const std::string& peer) const {
  const std::lock_guard lock(mutex_);
  const auto known = peers_.find(peer);
  return known == peers_.end() ? peer : known->second;
}

void Timeline::add_clock_sample(const std::string& task, const ClockSample& sample) {
  const std::lock_guard lock(mutex_);
  clocks_[task].add(sample);
}

std::map<std::string, ClockSamples> Timeline::clock_samples() const {
  const std::lock_guard lock(mutex_);
  return clocks_;
}

}  // namespace paceline
