#include "params/protocol/record_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::string_view kPrefix = "shared.";

[[noreturn]] void refuse_ranges(const std::string& why) {
  throw Error(ErrorCode::kDataLoss, "[records] the unused records of a job: " + why);
}

}  // namespace

RecordSet::RecordSet(std::vector<RecordRange> ranges) : ranges_(std::move(ranges)) {
  std::int64_t end = -1;
  for (const RecordRange& range : ranges_) {
    if (range.first <= end || range.end <= range.first || range.first >= kMost) {
      refuse_ranges(fmt::format("{} to {} after {}", range.first, range.end, end));
    }
    end = range.end;
  }
  if (end != kNoEnd) refuse_ranges("they end");
}

bool RecordSet::contains(RecordRange range) const {
  return std::ranges::any_of(ranges_, [&](const RecordRange& has) {
    return has.first <= range.first && range.end <= has.end;
  });
}

void RecordSet::add(RecordRange range) {
  if (range.size() <= 0) return;
  auto at =
      std::ranges::find_if(ranges_, [&](const RecordRange& has) { return has.end >= range.first; });
  while (at != ranges_.end() && at->first <= range.end) {
    range = {std::min(range.first, at->first), std::max(range.end, at->end)};
    at = ranges_.erase(at);
  }
  ranges_.insert(at, range);
}

void RecordSet::remove(RecordRange range) {
  std::vector<RecordRange> kept;
  for (const RecordRange& has : ranges_) {
    const RecordRange before{has.first, std::min(has.end, range.first)};
    const RecordRange after{std::max(has.first, range.end), has.end};
    if (before.size() > 0) kept.push_back(before);
    if (after.size() > 0) kept.push_back(after);
  }
  if (range.size() > 0) ranges_ = std::move(kept);
}

RecordRange RecordSet::take(std::int64_t count, std::int64_t limit) {
  const std::int64_t first = ranges_.front().first;
  const RecordRange taken{first, std::min({first + count, ranges_.front().end, limit})};
  if (taken.size() <= 0) return {};
  remove(taken);
  return taken;
}

RecordRange RecordSet::at(std::int64_t offset, std::int64_t count) const {
  for (const RecordRange& range : ranges_) {
    if (offset < range.size()) {
      const std::int64_t first = range.first + offset;
      return {first, first + std::min(count, range.end - first)};
    }
    offset -= range.size();
  }
  return {};
}

void tell_unused(const RecordSet& unused, TaskPosition& to) {
  forget_unused(to);
  const auto& ranges = unused.ranges();
  const std::size_t left = ranges.size() - 1;
  to.numbers["shared.next"] = ranges.back().first;
  to.numbers["shared.left"] = std::int64_t(left);
  for (std::size_t i = 0; i < left; ++i) {
    to.numbers[fmt::format("shared.left.{}.first", i + 1)] = ranges[i].first;
    to.numbers[fmt::format("shared.left.{}.end", i + 1)] = ranges[i].end;
  }
}

std::optional<RecordSet> unused_of(const TaskPosition& position) {
  const auto number = [&](const std::string& name) {
    const auto found = position.numbers.find(name);
    if (found == position.numbers.end()) refuse_ranges(name + " is missing");
    return found->second;
  };
  if (!position.numbers.contains("shared.next")) return {};
  const std::int64_t left = number("shared.left");
  std::vector<RecordRange> ranges;
  for (std::int64_t i = 1; i <= left; ++i) {
    ranges.push_back({number(fmt::format("shared.left.{}.first", i)),
                      number(fmt::format("shared.left.{}.end", i))});
  }
  ranges.push_back({number("shared.next"), RecordSet::kNoEnd});
  return RecordSet(std::move(ranges));
}

void forget_unused(TaskPosition& position) {
  std::erase_if(position.numbers,
                [](const auto& number) { return number.first.starts_with(kPrefix); });
}

}  // namespace paceline
