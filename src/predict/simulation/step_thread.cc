#include "predict/simulation/step_thread.h"

#include <utility>

#include "predict/simulation/virtual_seconds.h"

namespace paceline {
StepThread::StepThread(SimulatedWorld& world, int index)
    : world_(world), index_(index), host_(world.job.cluster.workers[std::size_t(index)]) {}

bool StepThread::finished() const { return steps_ >= world_.job.warm_steps + world_.job.steps; }

// What is done at once calls back into it, and only leaves busy_ false.
void StepThread::go_on() {
  if (std::exchange(going_, true)) return;
  while (!busy_ && step()) {
  }
  going_ = false;
}

// Returns false when the thread waits.
bool StepThread::step() {
  switch (phase_) {
    case Phase::kBegins:
      return begin();
    case Phase::kActs:
      return act();
    case Phase::kEnds:
      return end();
  }
  return false;
}

bool StepThread::begin() {
  if (!may_begin()) return wait(&Spent::others);
  stop_waiting();
  if (steps_ == world_.job.warm_steps) counted_from_ = world_.time.now();
  phase_ = Phase::kActs;
  at_ = 0;
  busy_ = true;
  world_.time.after(span_of(world_.job.costs.step_s), [this] {
    busy_ = false;
    begin_step();
    go_on();
  });
  return true;
}

bool StepThread::act() {
  if (at_ == world_.job.step->actions.size()) {
    end_step();
    phase_ = Phase::kEnds;
    return true;
  }
  const StepAction& action = world_.job.step->actions[at_];
  if (action.kind == StepAction::Kind::kNeed) {
    if (!has(action.variable)) return wait(&Spent::values);
    stop_waiting();
    ++at_;
    return true;
  }
  ++at_;
  run(action);
  return true;
}

bool StepThread::end() {
  if (!answered()) return wait(&Spent::answer);
  stop_waiting();
  busy_ = true;
  finish_step([this] {
    note_step();
    phase_ = Phase::kBegins;
    busy_ = false;
    go_on();
  });
  return true;
}

void StepThread::run(const StepAction& action) {
  busy_ = true;
  const TimePoint begun = world_.time.now();
  if (action.kind == StepAction::Kind::kReady) {
    return ready(action.variable, [this] {
      busy_ = false;
      go_on();
    });
  }
  auto then = [this, begun] {
    spend(&Spent::device, seconds_of(world_.time.now() - begun));
    busy_ = false;
    go_on();
  };
  const int threads = world_.job.step->threads;
  if (threads == 0) return world_.time.after(span_of(action.seconds), std::move(then));
  machine().run(
      {.core_seconds = action.seconds * threads, .bytes = action.bytes, .threads = threads},
      std::move(then));
}

bool StepThread::wait(double Spent::*for_what) {
  if (waits_for_ != for_what) waits_since_ = world_.time.now();
  waits_for_ = for_what;
  return false;
}

void StepThread::stop_waiting() {
  if (waits_for_ == nullptr) return;
  spend(std::exchange(waits_for_, nullptr), seconds_of(world_.time.now() - waits_since_));
}

void StepThread::spend(double Spent::*on, double seconds) {
  if (steps_ >= world_.job.warm_steps && !finished()) spent_.*on += seconds;
}

void StepThread::note_step() {
  ++steps_;
  if (finished() && counted_to_ == TimePoint{}) counted_to_ = world_.time.now();
}

}  // namespace paceline
