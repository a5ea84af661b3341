#include "train/tower_batches.h"

#include "train/step_feed.h"

namespace paceline {

bool TowerBatches::fill(const std::function<void(Feed&)>& feed, std::int64_t first,
                        TaskPosition& position, const std::shared_ptr<const InputNormals>& normals,
                        const std::shared_ptr<RecordBlocks>& blocks) {
  normals_ = normals;
  Set& set = sets_[filling_];
  for (std::size_t tower = 0; tower < set.size(); ++tower) {
    Batch& batch = set[tower];
    batch.number = first + std::int64_t(tower);
    batch.feed.begin(batch.number, position, normals, blocks);
    feed(batch.feed);
    position = batch.feed.position();
    if (batch.feed.stopped()) return false;
    if (tower > 0) batch.feed.take_kept(set[0].feed);
  }
  return true;
}

void TowerBatches::give(std::size_t tower, Executor& executor) const {
  const Batch& batch = sets_[1 - filling_][tower];
  StepFeed to(executor, normals_, batch.number, batch.given);
  batch.feed.give(to);
  to.check_fed();
}

}  // namespace paceline
