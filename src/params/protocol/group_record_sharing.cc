#include "params/protocol/group_record_sharing.h"

#include <algorithm>
#include <utility>

namespace paceline {

std::int64_t GroupRecordSharing::offset() const {
  return (units_ * members_ + place_) * kUnit + of_unit_;
}

RecordRange GroupRecordSharing::take(std::int64_t limit, std::int64_t most) {
  if (frozen_ || revoked_) return {};
  RecordRange taken = pool_.at(offset(), std::min(most, kUnit - of_unit_));
  taken.end = std::min(taken.end, limit);
  if (taken.size() <= 0) return {};
  of_unit_ += taken.size();
  if (of_unit_ == kUnit) {
    ++units_;
    of_unit_ = 0;
  }
  if (!held_.empty() && held_.back().end == taken.first) {
    held_.back().end = taken.end;
  } else {
    held_.push_back(taken);
  }
  return taken;
}

bool GroupRecordSharing::over(std::int64_t limit) const {
  return !frozen_ && !revoked_ && pool_.at(offset(), 1).first >= limit;
}

std::vector<RecordRange> GroupRecordSharing::reads(std::int64_t records) const {
  std::vector<RecordRange> read;
  std::int64_t missing = std::max<std::int64_t>(records - done_, 0);
  for (const RecordRange& range : held_) {
    if (missing == 0) break;
    const std::int64_t count = std::min(missing, range.size());
    read.push_back({range.first, range.first + count});
    missing -= count;
  }
  return read;
}

void GroupRecordSharing::begin() {
  held_.clear();
  revoked_ = false;
  done_ = 0;
}

void GroupRecordSharing::leave() {
  frozen_ = true;
  revoked_ = revoked_ || !held_.empty();
  held_.clear();
}

void GroupRecordSharing::use_up(std::int64_t records) {
  done_ += records;
  while (records > 0 && !held_.empty()) {
    RecordRange& first = held_.front();
    const std::int64_t count = std::min(records, first.size());
    first.first += count;
    records -= count;
    if (first.size() == 0) held_.pop_front();
  }
}

void GroupRecordSharing::use_own(std::span<const RecordRange> ranges) {
  use(ranges);
  for (const RecordRange& range : ranges) use_up(range.size());
}

void GroupRecordSharing::use(std::span<const RecordRange> ranges) {
  for (const RecordRange& range : ranges) unused_.remove(range);
}

void GroupRecordSharing::deal(RecordSet unused, const std::vector<std::vector<RecordRange>>& held,
                              int place) {
  const std::vector<RecordRange>& own = held[std::size_t(place)];
  if (!std::ranges::equal(own, held_)) leave();
  unused_ = std::move(unused);
  pool_ = unused_;
  for (const auto& each : held) {
    for (const RecordRange& range : each) pool_.remove(range);
  }
  place_ = place;
  members_ = std::int64_t(held.size());
  units_ = of_unit_ = 0;
  frozen_ = false;
}

std::vector<std::vector<RecordRange>> held_by_members(
    const RecordSet& unused, const std::vector<std::vector<RecordRange>>& claims) {
  RecordSet free = unused;
  std::vector<std::vector<RecordRange>> held;
  for (const auto& claim : claims) {
    auto& own = held.emplace_back();
    for (const RecordRange& claimed : claim) {
      for (const RecordRange& has : std::vector(free.ranges())) {
        const RecordRange both{std::max(claimed.first, has.first), std::min(claimed.end, has.end)};
        if (both.size() <= 0) continue;
        own.push_back(both);
        free.remove(both);
      }
    }
  }
  return held;
}

}  // namespace paceline
