// The reduction of a step's contributions among the members of a group: over links, by MPI, or by
// any other engine that has these few calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "paceline/error.h"
#include "params/collective/contribution_layout.h"

namespace paceline {

/// The members that reduce one step together.
struct ReductionGroup {
  std::uint64_t tag = 0;              // of this attempt at this step, equal for all members
  std::vector<std::int32_t> members;  // ascending
  int rank = 0;                       // this worker's place among the members
  std::vector<float> weights;         // by rank; the sum is 1
  bool in_place = false;              // every member reads the memory of all others
};

/// Numbers of a sum, in memory of this worker or of another.
struct SumPart {
  std::size_t first = 0;  // the place of the first one in the bucket
  std::span<const float> values;
};

/// The weighted sum of the rows of all members, in the ascending order of their ids.
struct RowSums {
  std::span<const std::int32_t> ids;
  std::span<const float> rows;
};

/// Hears of a reduction, on any thread.
class ReductionListener {
 public:
  virtual ~ReductionListener() = default;
  /// This worker has all sums of the attempt.
  virtual void reduced(std::uint64_t tag) = 0;
  /// After rest(): this worker reads, writes and sends no more of the last attempt.
  virtual void rested() = 0;
  /// The reduction cannot go on.
  virtual void failed(const Error& error) = 0;
};

/// Contributions lie in memory() and do not change before the next step. Sums have the same bits on
/// every member, whatever the timing. One thread makes the steps. Any thread may call open, start
/// and rest, one at a time.
class Collectives {
 public:
  virtual ~Collectives() = default;
  /// The memory of this worker's contributions, laid out by a ContributionLayout.
  virtual std::span<std::byte> memory() = 0;
  /// Begins a new step, to which this worker has contributed nothing yet.
  virtual void begin(std::shared_ptr<const std::vector<Bucket>> buckets) = 0;
  /// Other members may reduce this attempt from now on. Contributions of this step stay.
  virtual void open(std::uint64_t tag) = 0;
  /// All members have opened the attempt: it proceeds without waiting for the step thread.
  virtual void start(const ReductionGroup& group) = 0;
  /// This worker's contribution to a bucket is whole; `rows` is its number of rows of a sparse
  /// variable.
  virtual void contribute(std::size_t bucket, std::size_t rows) = 0;
  /// Gives the attempt up. ReductionListener::rested follows.
  virtual void rest() = 0;
  /// False when a lost member ends the job, since the others could not go on without it.
  virtual bool survives_losses() const { return true; }
  /// The sums of the last attempt, after its reduction and until the next one starts.
  virtual void sum_of(std::size_t bucket, std::vector<SumPart>& parts) const = 0;
  virtual RowSums row_sums_of(std::size_t bucket) const = 0;
};

}  // namespace paceline
