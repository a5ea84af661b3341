#include "params/shared_record_blocks.h"

#include <utility>

#include "paceline/error.h"

namespace paceline {

std::int64_t SharedRecordBlocks::begin(const Wish& wish, std::function<void()> changed) {
  {
    const std::lock_guard lock(mutex_);
    if (changed_) {
      throw Error(ErrorCode::kFailedPrecondition,
                  "[records] two pipelines ask for records: a job shares out those of one");
    }
    changed_ = std::move(changed);
  }
  in_use_ = true;
  return began(wish);
}

void SharedRecordBlocks::end() {
  const std::lock_guard lock(mutex_);
  changed_ = nullptr;
}

void SharedRecordBlocks::tell_changed() {
  const std::lock_guard lock(mutex_);
  if (changed_) changed_();
}

}  // namespace paceline
