// The calls by which a simulated worker's step uses the store of its variables. They match
// StoreSteps, except that a call that would wait returns whether the step may go on.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "exec/parameter_store.h"

namespace paceline {

/// The seconds of a worker: on its device; in its own rules; and in waits for values, for the
/// answer to a step, and for other workers.
struct SpentSeconds {
  double device = 0, rules = 0, values = 0, answer = 0, others = 0;
};

/// As in a job, stores can be stacked: one may stand over others.
class SimulatedStore {
 public:
  using Done = std::function<void()>;
  /// The object that makes the steps.
  struct User {
    Done changed;  // called when something that the worker waits for may have arrived
    std::function<void(double SpentSeconds::*on, double seconds)> spent;
  };
  virtual ~SimulatedStore() = default;
  /// Call it before the first step.
  void set_user(User user) { user_ = std::move(user); }

  /// True if a step of this kind may begin: kTrain, or kFetch, which contributes nothing and has no
  /// end.
  virtual bool may_begin(StepKind kind) = 0;
  /// Begins a step of one plan; there are several plans if each exchanges a part of the variables.
  virtual void begin_step(StepKind kind, int plan) = 0;
  virtual bool has(VariableId variable) const = 0;
  /// Hands over the finished contribution. Calls `done`, now or later, once the step may go on.
  virtual void ready(VariableId variable, const Done& done) = 0;
  /// Calls `done`, now or later, once the worker may go on.
  virtual void end_step(const Done& done) = 0;
  /// True if the ps tasks or the group have counted the last step that ended.
  virtual bool answered() const = 0;
  /// Returns how many global steps the values include once answered() is true.
  virtual std::int64_t global_step() const = 0;

 protected:
  const User& user() const { return user_; }

 private:
  User user_;
};

}  // namespace paceline
