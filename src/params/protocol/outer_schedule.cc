#include "params/protocol/outer_schedule.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace paceline {

// Goes from the largest variable to the smallest, and gives each to the fragment with the fewest
// bytes.
OuterSchedule::OuterSchedule(std::span<const std::int64_t> bytes, std::int64_t local_steps,
                             int fragments)
    : local_steps_(local_steps) {
  PACELINE_CHECK(local_steps > 0 && fragments > 0);
  std::vector<VariableId> order(bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](VariableId v) { return bytes[std::size_t(v)] <= 0; });
  std::ranges::stable_sort(order, std::greater{},
                           [&](VariableId v) { return bytes[std::size_t(v)]; });
  const std::int64_t most = std::min<std::int64_t>(local_steps, std::int64_t(order.size()));
  const auto count = std::size_t(std::clamp<std::int64_t>(most, 1, fragments));
  variables_.resize(count);
  std::vector<std::int64_t> sums(count);
  for (const VariableId variable : order) {
    const auto least = std::size_t(std::ranges::min_element(sums) - sums.begin());
    variables_[least].push_back(variable);
    sums[least] += bytes[std::size_t(variable)];
  }
  const double total = std::max(1.0, double(std::reduce(sums.begin(), sums.end())));
  double share = 0;
  for (std::size_t fragment = 0; fragment < count; ++fragment) {
    share += double(sums[(fragment + count - 1) % count]) / total;
    const std::int64_t before = fragment == 0 ? 0 : offsets_.back();
    // The steps that the fragments after this one need: at least one each.
    const std::int64_t left = std::int64_t(count - fragment) - 1;
    const auto even = std::int64_t(share * double(local_steps) + 0.5);
    offsets_.push_back(std::clamp(even, before + 1, local_steps - left));
  }
  offsets_.back() = local_steps;
}

std::int64_t OuterSchedule::steps_of(std::int64_t rounds) const {
  const std::int64_t rest = rounds % fragments();
  return rounds / fragments() * local_steps_ + (rest == 0 ? 0 : offsets_[std::size_t(rest) - 1]);
}

std::int64_t OuterSchedule::rounds_of(std::int64_t steps) const {
  const auto rest = std::ranges::upper_bound(offsets_, steps % local_steps_) - offsets_.begin();
  return steps / local_steps_ * fragments() + rest;
}

std::int64_t OuterSchedule::rounds_for(std::int64_t steps) const {
  const std::int64_t whole = rounds_of(steps);
  return steps_of(whole) == steps ? whole : whole + 1;
}

}  // namespace paceline
