// A worker's exchange of its copies of variables with the store that all workers share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "exec/parameter_store.h"
#include "params/protocol/outer_turns.h"
#include "trace/step_account.h"

namespace paceline {

/// All calls come from one thread.
class OuterExchange {
 public:
  /// If workers do not wait for each other, `contributed` is the number of this worker's
  /// contributions so far. Otherwise the store below has rounds, which all workers count alike.
  /// `local` has the worker's copies, by variable; they must hold the present values of the store
  /// below. All arguments must outlive this object; pool and account may be null.
  OuterExchange(ParameterStore& below, const OuterSchedule& schedule,
                std::optional<std::int64_t> contributed, std::vector<TensorView> local,
                std::vector<float> rates, ThreadPool* pool, StepAccount* account);

  /// Call it after each local step. Contributes fragments and takes over common values, as the
  /// schedule says.
  void step_made(std::int64_t examples);
  /// Waits until this worker's last contribution counts: until its round is closed, if there are
  /// rounds.
  void settle();
  /// The number of rounds, or of contributions, that count. A contribution of this worker that is
  /// not known to count yet is included.
  std::int64_t rounds() const { return turns_.rounds(); }

 private:
  void contribute(int fragment);
  void take_over(int fragment);
  template <typename Element>
  void for_elements(VariableId variable, Element&& element);

  ParameterStore& below_;
  const OuterSchedule& schedule_;
  const std::vector<TensorView> local_;
  const std::vector<float> rates_;
  ThreadPool* const pool_;
  StepAccount* const account_;
  std::vector<std::unique_ptr<StoreSteps>> steps_;  // by fragment
  /// For each trained variable, the common value from which the copy began. While the difference is
  /// under way, the copy as it was when the worker sent the difference.
  std::vector<Tensor> base_;
  OuterTurns turns_;
  StepHandle* sent_ = nullptr;  // the step of the last contribution
  std::int64_t examples_ = 0, step_ = 0;
};

}  // namespace paceline
