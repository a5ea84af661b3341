#include "predict/simulation/step_thread.h"

#include <utility>

#include "predict/simulation/virtual_seconds.h"

namespace paceline {
StepThread::StepThread(const SimulatedJob& job, int index, SimulatedStore& store, VirtualTime& time,
                       Transport& transport)
    : job_(job),
      store_(store),
      time_(time),
      machine_(transport.machine_of(job.cluster.workers[std::size_t(index)])),
      slowness_(job.cluster.slowness_of(index)) {
  store.set_user(
      {.changed = [this] { go_on(); },
       .spent = [this](double SpentSeconds::*on, double seconds) { spend(on, seconds); }});
}

bool StepThread::finished() const { return steps_ >= job_.warm_steps + job_.steps; }

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
  if (!store_.may_begin(StepKind::kTrain)) return wait(&SpentSeconds::others);
  stop_waiting();
  if (steps_ == job_.warm_steps) counted_from_ = time_.now();
  phase_ = Phase::kActs;
  at_ = 0;
  busy_ = true;
  time_.after(span_of(job_.costs.step_s), [this] {
    const auto then = [this] {
      busy_ = false;
      store_.begin_step(StepKind::kTrain, 0);
      go_on();
    };
    const double input = job_.step->input_seconds;
    if (job_.step->towers == 1) return machine_.run({.core_seconds = input}, then);
    // Another thread makes the next batches of all towers meanwhile.
    machine_.run({.core_seconds = input * job_.step->towers}, [] {});
    then();
  });
  return true;
}

bool StepThread::act() {
  if (at_ == job_.step->actions.size()) {
    if (!to_sum_.empty()) return wait(&SpentSeconds::rules);
    stop_waiting();
    phase_ = Phase::kEnds;
    busy_ = true;
    store_.end_step([this] {
      busy_ = false;
      go_on();
    });
    return true;
  }
  const StepAction& action = job_.step->actions[at_];
  if (action.kind == StepAction::Kind::kNeed) {
    if (!store_.has(action.variable)) return wait(&SpentSeconds::values);
    stop_waiting();
    ++at_;
    return true;
  }
  ++at_;
  run(action);
  return true;
}

bool StepThread::end() {
  if (!store_.answered()) return wait(&SpentSeconds::answer);
  stop_waiting();
  note_step();
  phase_ = Phase::kBegins;
  return true;
}

void StepThread::run(const StepAction& action) {
  busy_ = true;
  const TimePoint begun = time_.now();
  if (action.kind == StepAction::Kind::kReady && job_.step->towers > 1) {
    to_sum_.push_back(&action);
    busy_ = false;
    if (to_sum_.size() == 1) sum();
    return;
  }
  if (action.kind == StepAction::Kind::kReady) {
    return store_.ready(action.variable, [this] {
      busy_ = false;
      go_on();
    });
  }
  auto then = [this, begun] {
    spend(&SpentSeconds::device, seconds_of(time_.now() - begun));
    busy_ = false;
    go_on();
  };
  const int threads = job_.step->threads;
  const double seconds = slowness_ * action.seconds;
  if (threads == 0) return time_.after(span_of(seconds), std::move(then));
  const double on_cores = seconds * job_.step->busy;
  auto compute = [this, threads, on_cores, bytes = action.bytes, then = std::move(then)]() mutable {
    machine_.run({.core_seconds = on_cores * threads, .bytes = bytes, .threads = threads},
                 std::move(then));
  };
  if (on_cores == seconds) return compute();
  time_.after(span_of(seconds - on_cores), std::move(compute));
}

// The devices of towers compute while one contribution after the other is summed on the host, and
// handed over.
void StepThread::sum() {
  const StepAction& action = *to_sum_.front();
  machine_.run({.rule_bytes = job_.costs.bytes_to_sum(action.bytes, job_.step->towers),
                .threads = job_.step->rule_threads},
               [this, variable = action.variable] {
                 store_.ready(variable, [this] {
                   to_sum_.pop_front();
                   if (!to_sum_.empty()) return sum();
                   go_on();
                 });
               });
}

bool StepThread::wait(double SpentSeconds::*for_what) {
  if (waits_for_ != for_what) waits_since_ = time_.now();
  waits_for_ = for_what;
  return false;
}

void StepThread::stop_waiting() {
  if (waits_for_ == nullptr) return;
  spend(std::exchange(waits_for_, nullptr), seconds_of(time_.now() - waits_since_));
}

void StepThread::spend(double SpentSeconds::*on, double seconds) {
  if (steps_ >= job_.warm_steps && !finished()) spent_.*on += seconds;
}

void StepThread::note_step() {
  ++steps_;
  if (finished() && counted_to_ == TimePoint{}) counted_to_ = time_.now();
}

}  // namespace paceline
