// Decides what a worker asks for when a step begins. Plain decisions: it has no thread, link or
// clock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// The kind of step that last brought a variable's value, or had the worker's copy of the value
/// renewed. It determines what the worker must still ask for.
enum class Freshness : std::uint8_t { kNothing, kByTraining, kWhole, kByFetch };

/// A step's use of a variable.
struct ValueUse {
  bool in_place = false;  // reads memory of the ps, not values that arrived in frames
  bool in_copy = false;   // if in_place: reads the copy that the ps makes for this worker
  bool sparse = false, trained = true;
  bool updated = false;  // the step contributes to the variable
};

/// True when the worker must ask for the value. The answer to a train step's contribution brings
/// the new value. So if training has brought the held value, the next train step asks for it only
/// in one case: others may contribute to the variable, but that step does not. An evaluation asks
/// for the value unless an evaluation has brought the held value. AskAhead decides which values a
/// fetch step must pull.
bool must_pull(StepKind kind, Freshness held, const ValueUse& use);
/// True when the worker must ask the ps to renew this worker's copy. A contribution asks for that
/// by itself, so a step that contributes need not ask if training brought the held value. A
/// contribution of rows never renews the copy.
bool must_renew_copy(StepKind kind, Freshness held, const ValueUse& use);
/// The freshness of the value once the step has begun.
Freshness freshness_after(StepKind kind, const ValueUse& use);

/// The rows of the sparse variables of one plan for which the previous step asked at its end, ahead
/// of the next step.
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
  /// Notes the rows that a step has asked for at its end. `use` numbers that use of the store.
  void ended(std::int64_t use, std::span<const RowSet> rows);
  /// True when the worker need not ask for the rows, since the last use of the store has asked for
  /// them. Any later use may have changed the rows, or put other values in their place.
  bool on_their_way(const RowSet& rows, std::int64_t use) const;

 private:
  struct Asked {
    VariableId variable;
    std::vector<std::int32_t> ids;
  };
  std::vector<Asked> asked_;
  std::int64_t use_ = -1;
};

/// Returns the rows of one variable among the sets; none when it has no set.
std::span<const std::int32_t> ids_of(std::span<const RowSet> sets, VariableId variable);

}  // namespace paceline
