// Decides when a worker asks for a value before the fetch step that needs it, and what a step must
// still pull. A plain state machine: it has no thread, link or clock.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// What a worker knows about the value that it holds, and about the next value, which it may have
/// asked for.
struct KnownValue {
  bool by_fetch = false;             // the last fetch step brought the held value
  bool changes_after_reads = false;  // the ps changes the value by itself, after each read
  bool changed = false;              // a version newer than the held one is known
  bool next_asked = false;           // the next value was asked for, and has not arrived
  bool next_came = false;            // the next value has arrived
  bool next_is_newest = false;       // the next value has arrived, and no newer one is known
};

/// Decides for the fetch steps of one plan. If a value has changed between two steps, the worker
/// asks for the next value (kPullNext) as soon as a step has the present value. The ps can then
/// send the next value while kernels run. If a value changes faster than it is fetched, some steps
/// pull it instead.
class AskAhead {
 public:
  explicit AskAhead(std::size_t variables) : values_(variables) {}

  /// True when a step must pull the value: neither the held value nor a value that has arrived
  /// ahead is the newest known one, and no next value is certain to arrive.
  static bool must_pull(const KnownValue& value);
  /// Notes that this step pulls the value.
  void pulled(VariableId variable, const KnownValue& value);
  /// True when a step must wait for the next value. The step waits only for a variable that the ps
  /// changes after each read, since the next value of such a variable is certain to arrive. If the
  /// next value of another variable has not arrived, that variable has not changed. `step` is the
  /// step's number.
  bool waits(VariableId variable, bool next_asked, bool changes_after_reads,
             std::int64_t step) const;

  struct Decision {
    bool take_next = false;  // the step reads the value that has arrived ahead
    bool ask_next = false;   // the worker asks for the next value now
  };
  /// Decides, once in each step, about a value that the step needs. `newer`: the value that has
  /// arrived ahead is newer than the held one. `one_frame`: the value fits in one frame; a longer
  /// value cannot be asked for ahead.
  Decision needed(VariableId variable, bool newer, bool one_frame, std::int64_t step);

 private:
  struct Value {
    // True if the last pull was of a changed value that no step has needed yet.
    bool renewed = false;
    int rest = 0;               // pulls to make before the value is asked for ahead again
    std::int64_t decided = -1;  // the last step that needed the value
  };
  std::vector<Value> values_;  // by variable
};

}  // namespace paceline
