#include "params/collective/dealt_records.h"

namespace paceline {

void DealtRecords::leave() {
  {
    const std::lock_guard lock(mutex_);
    dealer_ = nullptr;
  }
  tell_changed();
}

std::int64_t DealtRecords::began(const Wish& wish) {
  set_reads(0);
  const std::lock_guard lock(mutex_);
  limit_ = wish.limit;
  if (dealer_ != nullptr) dealer_->begin_records();
  return 0;
}

RecordRange DealtRecords::take(std::int64_t most) {
  const std::lock_guard lock(mutex_);
  return dealer_ == nullptr ? RecordRange{} : dealer_->take_records(limit_, most);
}

bool DealtRecords::over() const {
  const std::lock_guard lock(mutex_);
  return dealer_ == nullptr || dealer_->records_over(limit_);
}

bool DealtRecords::revoked() const {
  const std::lock_guard lock(mutex_);
  return dealer_ != nullptr && dealer_->records_revoked();
}

void DealtRecords::check_wait() {
  const std::lock_guard lock(mutex_);
  if (dealer_ != nullptr) dealer_->check_job();
}

}  // namespace paceline
