// Values that change from one fetch step to the next are asked for before the next one begins.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/parameter_store.h"
#include "params/worker/worker_context.h"

namespace paceline {

/// Of one plan's fetch steps, over frames. What was pulled since it had changed is asked for ahead
/// (kPullNext): while kernels read the value, the ps sends the next one, as soon as there is one.
class FetchAhead {
 public:
  explicit FetchAhead(WorkerContext& state);

  /// Whether a value that the plan uses is known to change.
  bool may_have_come(const std::vector<PlanBinding::Use>& uses) const;
  /// Whether the step has to ask for the value: neither what is held nor what has come by itself is
  /// the newest that is known of.
  bool must_pull(VariableId variable) const;
  /// This step pulls it.
  void note_pulled(VariableId variable);
  /// True when the step must wait for the next value: one that the ps changes after each read is
  /// sure to come. Of other variables, what has not come has not changed.
  bool waits(VariableId variable) const;
  /// The step needs the value, which has come: takes a newer one, if there is one, and asks for the
  /// next. Once a step.
  void go_on(VariableId variable);

 private:
  struct Fetched {
    bool renewed = false;       // pulled since it had changed
    int rest = 0;               // so many pulls before it is asked for ahead again
    std::int64_t gone_on = -1;  // the last step that has
  };
  const VariableSpec& spec(VariableId variable) const;
  bool can_ask(VariableId variable) const;

  WorkerContext& state_;
  Arrivals& core_;
  std::vector<Fetched> fetched_;  // by variable
};

}  // namespace paceline
