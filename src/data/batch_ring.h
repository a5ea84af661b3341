// The batches that a pipeline is making, in the order in which they are used.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "data/pipeline_plan.h"

namespace paceline {

/// One batch. Its memory is used again.
struct BatchInWork {
  InputBatch batch;
  std::vector<std::int64_t> ordinals;  // of the records in its slots
  std::int64_t claimed = 0, done = 0;  // slots
  bool closed = false;                 // no more slots are claimed
  std::exception_ptr error;            // of the record in slot `error_slot`, the first that has one
  std::int64_t error_slot = 0;

  bool ready() const { return closed && done == claimed; }
  void fail(std::int64_t slot, std::exception_ptr why);
};

/// No locks inside. Slots are claimed in order, across batches.
class BatchRing {
 public:
  /// Throws kInvalidArgument for a pipeline without batches, or whose values have no shape.
  explicit BatchRing(const Pipeline& pipeline);

  /// Slots that can still be claimed.
  std::int64_t free_slots() const;
  /// A batch that has one; null when there is none.
  BatchInWork* with_free_slot();
  /// Claims a slot of that batch for a record.
  std::int64_t claim(BatchInWork& in_work, std::int64_t ordinal);
  /// No more slots will be claimed: the last batch is as long as it is.
  void close();
  /// True when the batch whose turn it is is ready.
  bool front_is_ready() const { return !in_work_.empty() && in_work_.front()->ready(); }
  /// True when there will be no more.
  bool over() const { return closed_ && in_work_.empty(); }
  std::int64_t ready_batches() const;
  /// The ready batch whose turn it is, until it is given back.
  BatchInWork& take();
  /// The memory of the batch that was taken can be filled again.
  void give_back();

 private:
  const std::int64_t batch_;
  bool closed_ = false;
  std::vector<std::unique_ptr<BatchInWork>> all_;
  std::deque<BatchInWork*> free_, in_work_;
  BatchInWork* taken_ = nullptr;
};

}  // namespace paceline
