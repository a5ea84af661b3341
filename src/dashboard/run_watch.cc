#include "dashboard/run_watch.h"

#include <exception>
#include <utility>

#include "paceline/error.h"

namespace paceline {
namespace {

// Ignores errors: if a task cannot be asked, or the run cannot be shown, training goes on.
template <typename Part>
void attempt(Part&& part) {
  try {
    part();
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace

RunWatch::RunWatch(const Options& options, Look look)
    : options_(options), look_(std::move(look)), run_(options.about, options.clock->now()) {
  ticks_ = std::make_unique<HeartbeatThread>(options_.every, [this] { tick(); });
}

RunWatch::~RunWatch() { ticks_.reset(); }

void RunWatch::ask_with(std::function<void()> ask) {
  const std::lock_guard lock(asking_);
  ask_ = std::move(ask);
}

void RunWatch::tick() {
  attempt([this] { ask(); });
  attempt([this] {
    const TimePoint now = options_.clock->now();
    hear(now);
    look_(run_, now);
  });
}

void RunWatch::ask() {
  const std::lock_guard lock(asking_);
  if (ask_) ask_();
}

// A task whose answer makes no sense counts as a task that did not answer.
void RunWatch::hear(TimePoint now) {
  for (const TaskWords& each : options_.hear()) {
    if (each.progress.empty()) continue;
    try {
      run_.heard(each.task, TaskProgress::from_json(each.progress), now);
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace paceline
