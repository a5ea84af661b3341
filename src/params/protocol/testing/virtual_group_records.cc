// VirtualGroup: the records that its workers share out.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "params/protocol/testing/virtual_group.h"

namespace paceline {

// It takes more than its next step reads, as a pipeline does. A frozen deal gives none.
void VirtualGroup::take_records(Process& process) {
  constexpr std::int64_t kBatch = 40, kAhead = 100, kLimit = 1'000'000;
  GroupRecordSharing& records = process.group->records();
  if (records.revoked()) {
    records.begin();
    process.read = 0;
  }
  std::int64_t held = 0;
  for (const RecordRange& range : records.held()) held += range.size();
  while (held < kAhead) {
    const RecordRange taken = records.take(kLimit);
    if (taken.size() == 0) break;
    held += taken.size();
  }
  process.read += std::min(held, kBatch);
}

// A step that was committed by processes that are no more may be made again, from other records.
void VirtualGroup::use_records(Process& process) {
  const std::int64_t step = std::int64_t(process.history.size()) - 1;
  std::vector<RecordRange>& used = process.used.emplace_back();
  for (const std::int32_t worker : process.history.back()) {
    const auto& begun = read_[{step, worker}];
    const auto after = begun.upper_bound(process.group->epoch());
    if (after == begun.begin()) continue;
    const auto& read = std::prev(after)->second;
    used.insert(used.end(), read.begin(), read.end());
  }
}

// A record is unused until a step that counts has read it.
void VirtualGroup::check_records(Process& process) {
  std::set<std::int64_t> used;
  for (const auto& step : process.used) {
    for (const RecordRange& range : step) {
      for (std::int64_t record = range.first; record < range.end; ++record) {
        if (used.insert(record).second) continue;
        return complain(fmt::format("worker:{} has used record {} again", process.worker, record));
      }
    }
  }
  const RecordSet& unused = process.group->records().unused();
  for (std::int64_t record = 0; record < unused.ranges().back().first + 100; ++record) {
    if (used.contains(record) != unused.contains({record, record + 1})) continue;
    return complain(fmt::format("worker:{}: record {} is {}", process.worker, record,
                                used.contains(record) ? "used, and unused" : "lost"));
  }
  result_.records = std::int64_t(used.size());
}

}  // namespace paceline
