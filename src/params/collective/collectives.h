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
  std::uint64_t tag = 0;              // identifies this attempt at this step; equal on all members
  std::vector<std::int32_t> members;  // ascending
  int rank = 0;                       // this worker's place among the members
  std::vector<float> weights;         // by rank; the sum is 1
  bool in_place = false;              // every member reads the memory of all others
};

/// Consecutive numbers of a sum, in memory of this worker or of another.
struct SumPart {
  std::size_t first = 0;  // the place of `values[0]` in the bucket
  std::span<const float> values;
};

/// The weighted sum of the rows of all members, in the ascending order of their ids.
struct RowSums {
  std::span<const std::int32_t> ids;
  std::span<const float> rows;
};

/// Hears how a reduction proceeds. Calls may come from any thread.
class ReductionListener {
 public:
  virtual ~ReductionListener() = default;
  /// Called when this worker has all sums of the attempt.
  virtual void reduced(std::uint64_t tag) = 0;
  /// Called in answer to rest(), once this worker no longer reads, writes or sends anything of the
  /// last attempt.
  virtual void rested() = 0;
  /// Called when the reduction cannot go on.
  virtual void failed(const Error& error) = 0;
};

/// An engine that reduces contributions. The contributions lie in memory() and do not change before
/// the next step. The sums have the same bits on every member, whatever the timing. One thread
/// makes the steps. Any threads may call open, start and rest, but one at a time.
class Collectives {
 public:
  virtual ~Collectives() = default;
  /// The memory of this worker's contributions, laid out by a ContributionLayout.
  virtual std::span<std::byte> memory() = 0;
  /// Begins a new step, to which this worker has contributed nothing yet.
  virtual void begin(std::shared_ptr<const std::vector<Bucket>> buckets) = 0;
  /// Opens an attempt: other members may reduce it from now on. This worker's contributions to the
  /// step remain.
  virtual void open(std::uint64_t tag) = 0;
  /// Starts an attempt that all members have opened. It proceeds without waiting for the step
  /// thread.
  virtual void start(const ReductionGroup& group) = 0;
  /// Says that this worker's contribution to a bucket is whole. For a sparse variable, `rows` is
  /// its number of rows.
  virtual void contribute(std::size_t bucket, std::size_t rows) = 0;
  /// Gives the attempt up. A call of ReductionListener::rested follows.
  virtual void rest() = 0;
  /// False when a lost member ends the job, since the others could not go on without it.
  virtual bool survives_losses() const { return true; }
  /// Sets `parts` to the bucket's sums. They are valid after the reduction of an attempt, until the
  /// next attempt starts.
  virtual void sum_of(std::size_t bucket, std::vector<SumPart>& parts) const = 0;
  virtual RowSums row_sums_of(std::size_t bucket) const = 0;
};

}  // namespace paceline
