#include "train/tower_batches.h"

#include <utility>

#include "train/step_feed.h"

namespace paceline {

bool TowerBatches::fill(const std::function<void(Feed&)>& feed, std::int64_t first,
                        TaskPosition& position, const std::shared_ptr<const InputNormals>& normals,
                        const std::shared_ptr<RecordBlocks>& blocks) {
  if (std::exchange(is_over_, false)) return false;
  normals_ = normals;
  Set& set = sets_[filling_];
  for (Batch& batch : set) batch.lacks = false;
  for (std::size_t tower = 0; tower < set.size(); ++tower) {
    Batch& batch = set[tower];
    batch.number = first + std::int64_t(tower);
    batch.feed.begin(batch.number, &position, normals, blocks);
    feed(batch.feed);
    position = batch.feed.position();
    if (batch.feed.stopped()) {
      is_over_ = some_may_lack_ && tower > 0;
      for (std::size_t none = tower; is_over_ && none < set.size(); ++none) set[none].lacks = true;
      return is_over_;
    }
    if (open_) batch.feed.take_kept(sets_[1 - filling_][tower].feed);
    if (tower > 0) batch.feed.take_kept(set[0].feed);
  }
  return true;
}

Executor& TowerBatches::give(std::size_t tower, TrainPlans& plans) const {
  const Batch& batch = sets_[1 - filling_][has(tower) ? tower : 0];
  Executor& executor = plans.choose(batch.feed.sizes());
  StepFeed to(executor, normals_, batch.number, &sets_[1 - filling_][tower].given, nullptr, open_);
  batch.feed.give(to);
  to.check_fed();
  return executor;
}

}  // namespace paceline
