// A set of unused records, by their places in the order of all epochs.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "paceline/task_position.h"

namespace paceline {

/// The last range of the set has no end: epochs go on for ever.
class RecordSet {
 public:
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  /// All ranges begin below this place.
  static constexpr std::int64_t kMost = std::int64_t{1} << 62;

  /// All records of all epochs.
  RecordSet() : ranges_{{0, kNoEnd}} {}
  /// Throws kDataLoss unless the ranges ascend, lie apart, and the last has no end.
  explicit RecordSet(std::vector<RecordRange> ranges);

  const std::vector<RecordRange>& ranges() const { return ranges_; }
  bool contains(RecordRange range) const;
  /// Adds records, and ignores those that the set has already.
  void add(RecordRange range);
  /// Removes records, and ignores those that the set does not have.
  void remove(RecordRange range);
  /// Removes the set's first records and returns them: at most `count` in a row, all below `limit`.
  /// Returns an empty range when the set has none below the limit.
  RecordRange take(std::int64_t count, std::int64_t limit);
  /// Returns the records that follow the first `offset` ones: at most `count` in a row.
  RecordRange at(std::int64_t offset, std::int64_t count) const;
  bool operator==(const RecordSet&) const = default;

 private:
  std::vector<RecordRange> ranges_;  // ascending, apart, none empty
};

/// Writes the set as numbers of a checkpoint: "shared.next", the beginning of the last range;
/// "shared.left", the number of ranges before the last one; and these ranges, as
/// shared.left.1.first, shared.left.1.end, ….
void tell_unused(const RecordSet& unused, TaskPosition& to);
/// Returns the written set; nothing when none was written. Throws kDataLoss for impossible numbers.
std::optional<RecordSet> unused_of(const TaskPosition& position);
/// Removes the numbers that tell_unused has written.
void forget_unused(TaskPosition& position);

}  // namespace paceline
