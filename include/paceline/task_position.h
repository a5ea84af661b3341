// The position of a task in its data, and the records that a job shares out to it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

namespace paceline {

/// Numbers by which a program finds its place in the data when it resumes. Each checkpoint has
/// these numbers by name.
struct TaskPosition {
  std::map<std::string, std::int64_t> numbers;  // "epoch", "batch"
  /// Sums by name, such as "cost". A checkpoint keeps every bit, except those of a NaN.
  std::map<std::string, double> sums;
  /// True when there are neither numbers nor sums.
  bool empty() const { return numbers.empty() && sums.empty(); }
  bool operator==(const TaskPosition&) const = default;
};

/// Successive records, by their places in the order of all epochs: with N records in an epoch,
/// place k of epoch e is e · N + k.
struct RecordRange {
  std::int64_t first = 0;  // the place of the first record
  std::int64_t end = 0;    // the place after the last record
  /// The number of records.
  std::int64_t size() const { return end - first; }
  bool operator==(const RecordRange&) const = default;
};

/// The name of a number in a task's position (Feed::position): the number of taken records that the
/// worker's steps have read.
inline constexpr char kTakenRecords[] = "shared.taken";

/// One worker's access to the records that a job shares out. The job gives the worker a new block
/// of records whenever the worker has used one up, and gives each record to one worker only. Any
/// thread may call the functions.
class RecordBlocks {
 public:
  virtual ~RecordBlocks() = default;
  /// The records that a pipeline asks for.
  struct Wish {
    std::int64_t records = 0;  // the number of records in a block
    std::int64_t blocks = 0;   // the number of blocks to ask for ahead
    std::int64_t limit = 0;    // the place after the last record that exists
  };
  /// Begins to ask. `changed` is called, on any thread, whenever take() may have more to give, or
  /// over() or revoked() has become true. Returns the number from which the caller counts the taken
  /// records (kTakenRecords). Throws kFailedPrecondition when another pipeline has begun and not
  /// ended, since a job shares out the records of one pipeline.
  virtual std::int64_t begin(const Wish& wish, std::function<void()> changed) = 0;
  /// Ends what begin() began: `changed` is called no more. The job gives records that were taken
  /// and not used again: to the next pipeline of this worker, or to other workers.
  virtual void end() = 0;
  /// The value for `most` in take() that means all records of a block.
  static constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max();
  /// Returns a range of at most `most` records that belong to this worker, each record once. The
  /// range is empty when no records are there yet. As blocks are taken, the next ones are asked
  /// for, so that Wish::blocks blocks are always asked for ahead.
  virtual RecordRange take(std::int64_t most = kWhole) = 0;
  /// True when there will be no more records.
  virtual bool over() const = 0;
  /// True when the job went on without this worker and gave its taken records to other workers. The
  /// caller must then call end() and begin() again.
  virtual bool revoked() const = 0;
  /// Call this several times a second while waiting for records. Throws when the wait must end,
  /// since the job has failed or is to stop.
  virtual void check_wait() = 0;
};

}  // namespace paceline
