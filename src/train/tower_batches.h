// Fills the batches of towers while the towers make the previous step.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "train/batch_feed.h"
#include "train/plan_set.h"

namespace paceline {

/// One thread fills a set of batches, one for each tower. Meanwhile each tower takes its batch of
/// the set that was filled before. The sizes of a batch choose the plan that computes it.
class TowerBatches {
 public:
  /// With `open`, the sizes of batches may differ, and so the executors: an input that is kept is
  /// then copied from batch to batch; otherwise the executor keeps it. With `some_may_lack`, a feed
  /// that stops before the last tower's batch leaves a set in which only the towers before have a
  /// batch.
  TowerBatches(std::size_t towers, bool open, bool some_may_lack)
      : sets_{Set(towers), Set(towers)}, open_(open), some_may_lack_(some_may_lack) {}

  /// Calls `feed` for each tower in turn, from batch number `first` on. `position` becomes the
  /// position after the last batch. Returns false when there is no set because the feed has
  /// stopped: in this call, or in the previous one, whose set lacked some batches.
  bool fill(const std::function<void(Feed&)>& feed, std::int64_t first, TaskPosition& position,
            const std::shared_ptr<const InputNormals>& normals,
            const std::shared_ptr<RecordBlocks>& blocks);
  /// Begins a run: forgets that the feed of the last run has stopped.
  void begin_run() { is_over_ = false; }
  /// Swaps the two sets between two steps: from now on give() reads the one that was filled, and
  /// fill() fills the other one.
  void turn() { filling_ = 1 - filling_; }
  /// Chooses a tower's plan for its batch, fills the inputs, and returns the executor. Throws
  /// kFailedPrecondition, naming an input that was not filled. All towers may call it at once.
  Executor& give(std::size_t tower, TrainPlans& plans) const;
  /// True if a tower has a batch in the set that give() reads. A tower without a batch computes
  /// tower 0's batch, which then counts as no examples.
  bool has(std::size_t tower) const { return !sets_[1 - filling_][tower].lacks; }

 private:
  struct Batch {
    BatchFeed feed;
    std::int64_t number = 0;
    bool lacks = false;
    mutable TaskPosition given;  // not used: position() was told when the batch was filled
  };
  using Set = std::vector<Batch>;

  std::array<Set, 2> sets_;
  const bool open_, some_may_lack_;
  bool is_over_ = false;     // true: the feed stopped within the last set
  std::size_t filling_ = 0;  // the set that fill() fills
  std::shared_ptr<const InputNormals> normals_;
};

}  // namespace paceline
