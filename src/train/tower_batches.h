// Fills the batches of towers while these make the previous step.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "exec/executor.h"
#include "train/batch_feed.h"

namespace paceline {

/// One thread fills a set of batches, one for each tower, while each tower takes its batch of the
/// set that was filled before.
class TowerBatches {
 public:
  explicit TowerBatches(int towers) : sets_{Set(std::size_t(towers)), Set(std::size_t(towers))} {}

  /// Calls `feed` for each tower in turn, from batch number `first` on. `position` becomes that
  /// after the last batch. Returns false when the feed has stopped.
  bool fill(const std::function<void(Feed&)>& feed, std::int64_t first, TaskPosition& position,
            const std::shared_ptr<const InputNormals>& normals,
            const std::shared_ptr<RecordBlocks>& blocks);
  /// Swaps the two sets between two steps: the filled one is given out, and the other one is
  /// filled.
  void turn() { filling_ = 1 - filling_; }
  /// Fills the inputs of a tower's executor with its batch. Throws kFailedPrecondition, naming an
  /// input that was not filled. All towers may call it at once.
  void give(std::size_t tower, Executor& executor) const;

 private:
  struct Batch {
    BatchFeed feed;
    std::int64_t number = 0;
    mutable TaskPosition given;  // of no use: position() was told when the batch was filled
  };
  using Set = std::vector<Batch>;

  std::array<Set, 2> sets_;
  std::size_t filling_ = 0;  // the set that fill() fills
  std::shared_ptr<const InputNormals> normals_;
};

}  // namespace paceline
