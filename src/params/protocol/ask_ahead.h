// Decides when a worker asks for a value before the fetch step that needs it, and what a step still
// has to pull. A plain state machine: no thread, link or clock inside.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// The knowledge of a worker about one value, and about the next one, which it may have asked for.
struct KnownValue {
  bool by_fetch = false;             // the last fetch step brought what is held
  bool changes_after_reads = false;  // the ps changes it of its own accord, after each read
  bool changed = false;              // a newer version than the one that is held is known of
  bool next_asked = false;           // the next one was asked for, and is not there
  bool next_came = false;            // it is there
  bool next_is_newest = false;       // it is there, and no newer one is known of
};

/// The asking ahead of one plan's fetch steps. A value that has changed between two steps is asked
/// for again as soon as a step has it (kPullNext), so that the ps sends the next one while kernels
/// run. A value that changes faster than it is fetched is pulled for some steps instead.
class AskAhead {
 public:
  explicit AskAhead(std::size_t variables) : values_(variables) {}

  /// True when a step has to ask for the value: neither the one that is held nor one that has
  /// arrived ahead is the newest that is known of.
  static bool must_pull(const KnownValue& value);
  /// Notes that this step pulls the value.
  void pulled(VariableId variable, const KnownValue& value);
  /// True when a step must wait for the next value: one that the ps changes after each read is sure
  /// to arrive. A value of another kind that has not arrived has not changed. Steps are numbered.
  bool waits(VariableId variable, bool next_asked, bool changes_after_reads,
             std::int64_t step) const;

  struct Decision {
    bool take_next = false;  // the step reads the value that has come ahead
    bool ask_next = false;   // the next one is asked for now
  };
  /// Decides, once a step, for a value that the step needs. `newer`: the value that has arrived
  /// ahead is newer than the one that is held; `one_frame`: the value fits one frame, as it must to
  /// be asked for ahead.
  Decision needed(VariableId variable, bool newer, bool one_frame, std::int64_t step);

 private:
  struct Value {
    bool renewed = false;       // pulled since it had changed
    int rest = 0;               // so many pulls before it is asked for ahead again
    std::int64_t decided = -1;  // the last step that has needed it
  };
  std::vector<Value> values_;  // by variable
};

}  // namespace paceline
