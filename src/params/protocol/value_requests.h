// Decides what a worker asks for when a step begins. Plain decisions: no thread, link or clock
// inside.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// The kind of step that brought a variable's value, or its copy by the ps. It says what else must
/// be asked for.
enum class Freshness : std::uint8_t { kNothing, kByTraining, kWhole, kByFetch };

/// A step's use of a variable.
struct ValueUse {
  bool in_place = false;  // it reads memory of the ps, and not values that came in frames
  bool in_copy = false;   // then: the copy that the ps makes for this worker
  bool sparse = false, trained = true;
  bool updated = false;  // the step contributes to it
};

/// True when the value is to be sent. A train step's contribution brings the new value, so training
/// asks for what it holds by training only where it does not contribute but others may. What a
/// fetch step has to pull is said by AskAhead.
bool must_pull(StepKind kind, Freshness held, const ValueUse& use);
/// True when the ps is to renew this worker's copy. A contribution that renews it is as good as
/// asking, until the step of another plan does not contribute. A contribution of rows never renews
/// it.
bool must_renew_copy(StepKind kind, Freshness held, const ValueUse& use);
/// The freshness of the value once the step has begun.
Freshness freshness_after(StepKind kind, const ValueUse& use);

/// The rows that the last step's end has asked for ahead, of the sparse variables of one plan.
class RowsAhead {
 public:
  void add(VariableId variable) { asked_.push_back({variable, {}}); }
  template <typename Predicate>
  bool any(Predicate&& predicate) const {
    for (const Asked& asked : asked_) {
      if (predicate(asked.variable)) return true;
    }
    return false;
  }
  /// A step has ended at that use of the store, and has asked for these.
  void ended(std::int64_t use, std::span<const RowSet> rows);
  /// True when they need not be asked for. Any use of the store since may have changed them, or put
  /// other values in their place.
  bool on_their_way(const RowSet& rows, std::int64_t use) const;

 private:
  struct Asked {
    VariableId variable;
    std::vector<std::int32_t> ids;
  };
  std::vector<Asked> asked_;
  std::int64_t use_ = -1;
};

/// The rows of one variable among sets; none: no rows.
std::span<const std::int32_t> ids_of(std::span<const RowSet> sets, VariableId variable);

}  // namespace paceline
