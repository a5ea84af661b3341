#include "params/worker/ps_record_blocks.h"

#include <algorithm>
#include <utility>

namespace paceline {

void PsRecordBlocks::leave() {
  {
    const std::lock_guard lock(mutex_);
    job_ = {};
    over_ = true;
  }
  tell_changed();
}

void PsRecordBlocks::add(const GivenRecords& given) {
  {
    const std::lock_guard lock(mutex_);
    given_.insert(given_.end(), given.ranges.begin(), given.ranges.end());
    over_ = over_ || given.over;
    starves_ = false;
  }
  tell_changed();
}

// What another pipeline has taken, and no step has read, is given again.
std::int64_t PsRecordBlocks::began(const Wish& wish) {
  const std::lock_guard lock(mutex_);
  forget_read(reads());
  given_.insert(given_.begin(), taken_.begin(), taken_.end());
  taken_.clear();
  wish_ = wish;
  ask_ahead();
  return reads();
}

void PsRecordBlocks::ask_ahead() {
  for (; job_.ask && !over_ && ahead_ < wish_.blocks; ++ahead_) {
    job_.ask({.records = wish_.records, .limit = wish_.limit});
  }
}

void PsRecordBlocks::forget_read(std::int64_t records) {
  while (read_ < records && !taken_.empty()) {
    RecordRange& first = taken_.front();
    const std::int64_t count = std::min(records - read_, first.size());
    first.first += count;
    read_ += count;
    if (first.size() == 0) taken_.pop_front();
  }
}

RecordRange PsRecordBlocks::take(std::int64_t most) {
  const std::lock_guard lock(mutex_);
  forget_read(reads());
  if (given_.empty()) return {};
  RecordRange& first = given_.front();
  taken_.push_back({first.first, first.first + std::min(most, first.size())});
  first.first = taken_.back().end;
  if (first.size() == 0) given_.pop_front();
  unasked_ += taken_.back().size();
  ahead_ -= unasked_ / wish_.records;
  unasked_ %= wish_.records;
  ask_ahead();
  return taken_.back();
}

bool PsRecordBlocks::over() const {
  const std::lock_guard lock(mutex_);
  return given_.empty() && (over_ || (job_.ended && job_.ended()));
}

void PsRecordBlocks::check_wait() {
  const std::lock_guard lock(mutex_);
  if (job_.check) job_.check();
  if (!job_.ask || over_ || !given_.empty() || std::exchange(starves_, true)) return;
  job_.ask({.records = 0, .limit = wish_.limit, .starves = true});
}

}  // namespace paceline
