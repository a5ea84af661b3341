// A set of records by their places in the order of all epochs: those that are not used yet.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "paceline/task_position.h"

namespace paceline {

/// Its last range has no end: epochs go on for ever.
class RecordSet {
 public:
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  /// No place is at or above this.
  static constexpr std::int64_t kMost = std::int64_t{1} << 62;

  /// All records of all epochs.
  RecordSet() : ranges_{{0, kNoEnd}} {}
  /// Throws kDataLoss unless the ranges ascend, lie apart and end with one without end.
  explicit RecordSet(std::vector<RecordRange> ranges);

  const std::vector<RecordRange>& ranges() const { return ranges_; }
  bool contains(RecordRange range) const;
  /// Adds records. Those that it has already stay.
  void add(RecordRange range);
  /// Removes records. Those that it does not have are passed over.
  void remove(RecordRange range);
  /// Removes its first records and returns them: at most `count` in a row, below `limit`. An empty
  /// range: it has none below the limit.
  RecordRange take(std::int64_t count, std::int64_t limit);
  /// Returns those that follow its first `offset` records: at most `count` in a row.
  RecordRange at(std::int64_t offset, std::int64_t count) const;
  bool operator==(const RecordSet&) const = default;

 private:
  std::vector<RecordRange> ranges_;  // ascending, apart, none empty
};

/// Writes the set as numbers of a checkpoint: "shared.next", and "shared.left", how many ranges are
/// left before that: shared.left.1.first, shared.left.1.end, ….
void tell_unused(const RecordSet& unused, TaskPosition& to);
/// Returns the set that was written; nothing when there is none. Throws kDataLoss for numbers that
/// cannot be.
std::optional<RecordSet> unused_of(const TaskPosition& position);
/// Removes what tell_unused has written.
void forget_unused(TaskPosition& position);

}  // namespace paceline
