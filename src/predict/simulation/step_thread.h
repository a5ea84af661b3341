// The thread of a simulated worker that makes its steps, one action after the other, and waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "predict/simulation/simulated_world.h"

namespace paceline {

/// How workers train together is said by the functions that a subclass defines.
class StepThread {
 public:
  StepThread(SimulatedWorld& world, int index);
  virtual ~StepThread() = default;

  int index() const { return index_; }
  int host() const { return host_; }
  /// The number of steps made, and the times at which the counted ones began and ended.
  std::int64_t steps() const { return steps_; }
  bool finished() const;
  TimePoint counted_from() const { return counted_from_; }
  TimePoint counted_to() const { return counted_to_; }
  /// The seconds of the counted steps: on the device, in rules of its own, waiting for values, for
  /// the answer to a step, and for other workers.
  struct Spent {
    double device = 0, rules = 0, values = 0, answer = 0, others = 0;
  };
  const Spent& spent() const { return spent_; }

 protected:
  /// Goes on as far as it can. To be called whenever what it waits for may be there.
  void go_on();
  MachineShare& machine() { return world_.transport.machine_of(host_); }

  virtual bool may_begin() = 0;
  virtual void begin_step() = 0;
  virtual bool has(VariableId variable) const = 0;
  /// The contribution is made. Calls `done` now or later, when the step may go on.
  virtual void ready(VariableId variable, const std::function<void()>& done) = 0;
  virtual void end_step() = 0;
  /// All of the step has been answered.
  virtual bool answered() = 0;
  /// Called when it was: calls `done` now or later, when the step is over.
  virtual void finish_step(const std::function<void()>& done) { done(); }
  void spend_on_rules(double seconds) { spend(&Spent::rules, seconds); }

  SimulatedWorld& world_;

 private:
  enum class Phase : std::uint8_t { kBegins, kActs, kEnds };
  bool step();
  bool begin();
  bool act();
  bool end();
  void run(const StepAction& action);
  bool wait(double Spent::*for_what);
  void stop_waiting();
  void spend(double Spent::*on, double seconds);
  void note_step();

  const int index_, host_;
  Phase phase_ = Phase::kBegins;
  std::size_t at_ = 0;
  bool busy_ = false, going_ = false;
  std::int64_t steps_ = 0;
  double Spent::*waits_for_ = nullptr;
  TimePoint waits_since_{}, counted_from_{}, counted_to_{};
  Spent spent_;
};

}  // namespace paceline
