// The records that an all-reduce shares out, as a pipeline asks for them.
#include "params/collective/collective_driver.h"

namespace paceline {

RecordSet CollectiveDriver::unused_records() const {
  const std::lock_guard lock(mutex_);
  return group_.records().unused();
}

void CollectiveDriver::begin_records() {
  const std::lock_guard lock(mutex_);
  group_.records().begin();
}

RecordRange CollectiveDriver::take_records(std::int64_t limit, std::int64_t most) {
  const std::lock_guard lock(mutex_);
  return group_.records().take(limit, most);
}

bool CollectiveDriver::records_over(std::int64_t limit) {
  const std::lock_guard lock(mutex_);
  return group_.training_ended() || group_.records().over(limit);
}

bool CollectiveDriver::records_revoked() {
  const std::lock_guard lock(mutex_);
  return group_.records().revoked();
}

void CollectiveDriver::check_job() {
  check();
  if (options_.check_interrupt) options_.check_interrupt();
}

}  // namespace paceline
