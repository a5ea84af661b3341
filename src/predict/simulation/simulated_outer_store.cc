#include "predict/simulation/simulated_outer_store.h"

#include <utility>

#include "params/variable_arrays.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

// Passes over the memory of a variable: a difference reads the common value and the copy and writes
// itself and the copy; taking over reads three and writes two.
constexpr double kDifferencePasses = 4, kTakeOverPasses = 5;

}  // namespace

SimulatedOuterStore::SimulatedOuterStore(SimulatedStore& inner, SimulatedStore& below,
                                         const SimulatedStep& shared, const OuterSchedule& schedule,
                                         bool in_rounds, VirtualTime& time, MachineShare& machine)
    : inner_(inner),
      below_(below),
      shared_(shared),
      schedule_(schedule),
      time_(time),
      machine_(machine),
      turns_(schedule, 0, in_rounds ? std::nullopt : std::optional<std::int64_t>(0)) {
  const auto spent = [this](double SpentSeconds::*on, double seconds) {
    user().spent(on, seconds);
  };
  inner.set_user({.changed = [this] { user().changed(); }, .spent = spent});
  below.set_user({.changed =
                      [this] {
                        go_on();
                        user().changed();
                      },
                  .spent = spent});
}

// The first values are the common ones.
bool SimulatedOuterStore::may_begin(StepKind) {
  if (begun_) return true;
  for (int fragment = 0; fragment < schedule_.fragments(); ++fragment) {
    for (const VariableId v : schedule_.variables_of(fragment)) {
      if (!below_.has(v)) return false;
    }
  }
  return begun_ = below_.may_begin(StepKind::kFetch);
}

void SimulatedOuterStore::end_step(const Done& done) {
  ended_ = done;
  inner_.end_step([] {});
  turns_.step_made();
  go_on();
}

// What is done at once calls back into it, and only leaves busy_ false.
void SimulatedOuterStore::go_on() {
  if (std::exchange(going_, true)) return;
  while (ended_ != nullptr && !busy_) {
    if (parts_.empty()) plan_parts();
    if (parts_.empty()) {
      std::exchange(ended_, nullptr)();
      break;
    }
    const Part& next = parts_.front();
    if (!next.may_begin()) {
      if (waits_since_ == TimePoint{}) waits_since_ = time_.now();
      break;
    }
    if (waits_since_ != TimePoint{}) {
      const TimePoint since = std::exchange(waits_since_, TimePoint{});
      user().spent(next.waits_as, seconds_of(time_.now() - since));
    }
    busy_ = true;
    const auto act = next.act;
    parts_.pop_front();
    act([this] {
      busy_ = false;
      go_on();
    });
  }
  going_ = false;
}

void SimulatedOuterStore::plan_parts() {
  const auto act = turns_.next();
  if (!act) return;
  switch (act->kind) {
    case OuterTurns::Act::Kind::kSettle:
      return settle();
    case OuterTurns::Act::Kind::kTakeOver:
      return take_over(act->fragment);
    case OuterTurns::Act::Kind::kContribute:
      return contribute(act->fragment);
  }
}

void SimulatedOuterStore::settle() {
  parts_.push_back({&SpentSeconds::answer, [this] { return below_.answered(); },
                    [this](const Done& done) {
                      turns_.settled(below_.global_step());
                      done();
                    }});
}

void SimulatedOuterStore::take_over(int fragment) {
  for (const VariableId v : schedule_.variables_of(fragment)) {
    parts_.push_back({&SpentSeconds::values, [this, v] { return below_.has(v); },
                      [this, v](const Done& done) { pass(v, kTakeOverPasses, done); }});
  }
  parts_.push_back({&SpentSeconds::values, [] { return true; },
                    [this, fragment](const Done& done) {
                      turns_.took_over(fragment);
                      done();
                    }});
}

void SimulatedOuterStore::contribute(int fragment) {
  parts_.push_back({&SpentSeconds::others, [this] { return below_.may_begin(StepKind::kTrain); },
                    [this, fragment](const Done& done) {
                      below_.begin_step(StepKind::kTrain, fragment);
                      done();
                    }});
  const auto at_once = [] { return true; };
  for (const VariableId v : schedule_.variables_of(fragment)) {
    parts_.push_back({&SpentSeconds::others, at_once, [this, v](const Done& done) {
                        pass(v, kDifferencePasses, [this, v, done] { below_.ready(v, done); });
                      }});
  }
  parts_.push_back({&SpentSeconds::others, at_once, [this](const Done& done) {
                      below_.end_step([this, done] {
                        turns_.contributed();
                        done();
                      });
                    }});
}

void SimulatedOuterStore::pass(VariableId variable, double passes, const Done& done) {
  const VariableSpec& spec = shared_.specs[std::size_t(variable)];
  const TimePoint begun = time_.now();
  machine_.run({.rule_bytes = passes * double(byte_count(spec.dtype, spec.shape)),
                .threads = shared_.rule_threads},
               [this, begun, done] {
                 user().spent(&SpentSeconds::rules, seconds_of(time_.now() - begun));
                 done();
               });
}

}  // namespace paceline
