// The position of a task in its data, and the records that a job shares out to it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

namespace paceline {

/// Numbers by which a program finds its place in the data when it resumes. They are saved with each
/// checkpoint, by name.
struct TaskPosition {
  std::map<std::string, std::int64_t> numbers;  // "epoch", "batch"
  /// Such as "cost". Every bit is kept, except of a NaN.
  std::map<std::string, double> sums;
  /// True when there are no numbers.
  bool empty() const { return numbers.empty() && sums.empty(); }
  bool operator==(const TaskPosition&) const = default;
};

/// Records in a row, by their places in the order of all epochs: with N records in an epoch, place
/// k of epoch e is e · N + k.
struct RecordRange {
  std::int64_t first = 0;  // the first one
  std::int64_t end = 0;    // after the last one
  /// The number of records.
  std::int64_t size() const { return end - first; }
  bool operator==(const RecordRange&) const = default;
};

/// The name of a number in a task's position (Feed::position): how many of its taken records the
/// worker's steps have read.
inline constexpr char kTakenRecords[] = "shared.taken";

/// One worker's side of the sharing: the job gives the worker a new block of records whenever it
/// has used one up, and gives each record to one worker. Functions may be called on any thread.
class RecordBlocks {
 public:
  virtual ~RecordBlocks() = default;
  /// The records that a pipeline asks for.
  struct Wish {
    std::int64_t records = 0;  // of a block
    std::int64_t blocks = 0;   // the blocks that are asked for ahead, before they are taken
    std::int64_t limit = 0;    // places from here on do not exist
  };
  /// Begins to ask. `changed` is called, on any thread, whenever take() may have more to give, or
  /// over() or revoked() has become true. Returns the number with which the count of taken records
  /// begins (Pipeline::share_out). Throws kFailedPrecondition when another pipeline has begun and
  /// not ended: a job shares out the records of one pipeline.
  virtual std::int64_t begin(const Wish& wish, std::function<void()> changed) = 0;
  /// Ends the asking: `changed` is called no more, and records that were taken and not used are
  /// given to others.
  virtual void end() = 0;
  /// All of a block.
  static constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max();
  /// Returns at most `most` records that are this worker's, each once; an empty range when none are
  /// there yet. The next block is asked for once the earlier ones were taken, except for
  /// Wish::blocks that are asked for ahead.
  virtual RecordRange take(std::int64_t most = kWhole) = 0;
  /// True when there will be no more.
  virtual bool over() const = 0;
  /// True when the taken records belong to others by now, since they went on without this worker,
  /// which must then end() and begin() again.
  virtual bool revoked() const = 0;
  /// The reader calls it several times a second while it waits for records. An exception of it ends
  /// the wait.
  virtual void check_wait() = 0;
};

}  // namespace paceline
