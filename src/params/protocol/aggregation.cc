#include "params/protocol/aggregation.h"

#include <fmt/format.h>

#include <utility>

#include "paceline/error.h"
#include "params/protocol/rounds.h"

namespace paceline {

std::string AggregationSpec::str() const {
  if (kind == AggregationKind::kAsync) return "async";
  if (kind == AggregationKind::kBounded) return fmt::format("ssp with staleness {}", staleness);
  if (workers_commit) return "hybrid" + (coordinator.empty() ? "" : ", ps:0 at " + coordinator);
  return fmt::format("sync with {} replicas to aggregate, late contributions {}{}",
                     replicas == 0 ? "all" : std::to_string(replicas),
                     late == LateContribution::kDrop ? "dropped" : "folded",
                     coordinator.empty() ? "" : ", ps:0 at " + coordinator);
}

BoundedStaleness::Member* BoundedStaleness::find(int worker) {
  const bool known = std::size_t(worker) < members_.size() && members_[std::size_t(worker)];
  return known ? &*members_[std::size_t(worker)] : nullptr;
}

std::optional<std::int64_t> BoundedStaleness::slowest() const {
  return clocks_.empty() ? std::nullopt : std::optional(clocks_.begin()->first);
}

void BoundedStaleness::forget_time_of(const Member& member) {
  const auto found = clocks_.find(member.clock);
  if (!member.done && --found->second == 0) clocks_.erase(found);
}

void BoundedStaleness::joined(int worker, std::int64_t next_step, StepLimits& out) {
  if (members_.size() <= std::size_t(worker)) members_.resize(std::size_t(worker) + 1);
  if (const Member* before = find(worker)) forget_time_of(*before);
  members_[std::size_t(worker)] = {.clock = slowest().value_or(0), .next_step = next_step};
  ++clocks_[find(worker)->clock];
  tell_limit(worker, out);
  tell_limits(out);
}

void BoundedStaleness::ended(int worker, std::int64_t step, StepLimits& out) {
  Member* const member = find(worker);
  if (member == nullptr || step < member->next_step) return;
  forget_time_of(*member);
  member->clock += step + 1 - member->next_step;
  member->next_step = step + 1;
  if (!member->done) ++clocks_[member->clock];
  tell_limits(out);
}

void BoundedStaleness::done(int worker, StepLimits& out) {
  Member* const member = find(worker);
  if (member == nullptr) return;
  forget_time_of(*member);
  member->done = true;
  tell_limits(out);
}

void BoundedStaleness::left(int worker, StepLimits& out) {
  const Member* const member = find(worker);
  if (member == nullptr) return;
  forget_time_of(*member);
  members_[std::size_t(worker)].reset();
  tell_limits(out);
}

void BoundedStaleness::tell_limit(int worker, StepLimits& out) {
  Member& member = *find(worker);
  const std::optional<std::int64_t> least = slowest();
  const std::int64_t limit =
      least ? member.next_step + (*least + staleness_ - member.clock) : kNoLimit;
  if (std::exchange(member.told, limit) != limit) out.push_back({worker, limit});
}

void BoundedStaleness::tell_limits(StepLimits& out) {
  if (std::exchange(told_slowest_, slowest()) == slowest()) return;
  for (std::size_t worker = 0; worker < members_.size(); ++worker) {
    if (members_[worker]) tell_limit(int(worker), out);
  }
}

std::unique_ptr<Aggregation> make_aggregation(const AggregationSpec& spec) {
  // No job reaches this limit. It keeps the sums of clocks within 64 bits.
  constexpr std::int64_t kMostStaleness = std::int64_t{1} << 40;
  if (spec.staleness < 0 || spec.staleness > kMostStaleness) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a staleness of {} steps makes no sense", spec.staleness));
  }
  if (spec.kind == AggregationKind::kBounded) {
    return std::make_unique<BoundedStaleness>(spec.staleness);
  }
  if (spec.kind == AggregationKind::kRounds) {
    const bool addressed = spec.num_ps == 1 || !spec.coordinator.empty();
    const bool two_rules =
        spec.workers_commit && (spec.replicas != 0 || spec.late != LateContribution::kDrop);
    if (spec.replicas < 0 || spec.num_ps < 1 || !addressed || two_rules) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("rounds of {} contributions on {} ps tasks, ps:0 at '{}', make no sense",
                      spec.replicas, spec.num_ps, spec.coordinator));
    }
    return std::make_unique<RoundsAggregation>();
  }
  return std::make_unique<AsyncAggregation>();
}

}  // namespace paceline
