#include "params/collective/group_record_blocks.h"

#include "params/collective/collective_driver.h"

namespace paceline {

void GroupRecordBlocks::leave() {
  {
    const std::lock_guard lock(mutex_);
    driver_ = nullptr;
  }
  tell_changed();
}

std::int64_t GroupRecordBlocks::began(const Wish& wish) {
  set_reads(0);
  const std::lock_guard lock(mutex_);
  limit_ = wish.limit;
  if (driver_ != nullptr) driver_->begin_records();
  return 0;
}

RecordRange GroupRecordBlocks::take(std::int64_t most) {
  const std::lock_guard lock(mutex_);
  return driver_ == nullptr ? RecordRange{} : driver_->take_records(limit_, most);
}

bool GroupRecordBlocks::over() const {
  const std::lock_guard lock(mutex_);
  return driver_ == nullptr || driver_->records_over(limit_);
}

bool GroupRecordBlocks::revoked() const {
  const std::lock_guard lock(mutex_);
  return driver_ != nullptr && driver_->records_revoked();
}

void GroupRecordBlocks::check_wait() {
  const std::lock_guard lock(mutex_);
  if (driver_ != nullptr) driver_->check_job();
}

}  // namespace paceline
