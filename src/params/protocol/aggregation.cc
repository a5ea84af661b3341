#include "params/protocol/aggregation.h"

#include <fmt/format.h>

#include "paceline/error.h"
#include "params/protocol/rounds.h"

namespace paceline {

std::string AggregationSpec::str() const {
  if (kind == AggregationKind::kAsync) return "async";
  if (kind == AggregationKind::kBounded) return fmt::format("ssp with staleness {}", staleness);
  if (workers_commit) return "mixed" + (coordinator.empty() ? "" : ", ps:0 at " + coordinator);
  return fmt::format("sync with {} replicas to aggregate, late contributions {}{}",
                     replicas == 0 ? "all" : std::to_string(replicas),
                     late == LateContribution::kDrop ? "dropped" : "folded",
                     coordinator.empty() ? "" : ", ps:0 at " + coordinator);
}

void AggregationOutbox::clear() {
  limits.clear();
  whole.clear();
  sums.clear();
}

std::optional<std::int64_t> BoundedStaleness::slowest() const {
  std::optional<std::int64_t> least;
  for (const std::optional<Member>& member : members_) {
    if (member && !member->done && (!least || member->clock < *least)) least = member->clock;
  }
  return least;
}

void BoundedStaleness::joined(int worker, std::int64_t next_step, AggregationOutbox& out) {
  if (members_.size() <= std::size_t(worker)) members_.resize(std::size_t(worker) + 1);
  members_[std::size_t(worker)].reset();
  members_[std::size_t(worker)] = {.clock = slowest().value_or(0), .next_step = next_step};
  tell_limits(out);
}

void BoundedStaleness::ended(int worker, std::int64_t step, AggregationOutbox& out) {
  if (std::size_t(worker) >= members_.size() || !members_[std::size_t(worker)]) return;
  Member& member = *members_[std::size_t(worker)];
  if (step < member.next_step) return;
  member.clock += step + 1 - member.next_step;
  member.next_step = step + 1;
  tell_limits(out);
}

void BoundedStaleness::done(int worker, AggregationOutbox& out) {
  if (std::size_t(worker) >= members_.size() || !members_[std::size_t(worker)]) return;
  members_[std::size_t(worker)]->done = true;
  tell_limits(out);
}

void BoundedStaleness::left(int worker, AggregationOutbox& out) {
  if (std::size_t(worker) >= members_.size()) return;
  members_[std::size_t(worker)].reset();
  tell_limits(out);
}

void BoundedStaleness::tell_limits(AggregationOutbox& out) {
  const std::optional<std::int64_t> least = slowest();
  for (std::size_t worker = 0; worker < members_.size(); ++worker) {
    if (!members_[worker]) continue;
    Member& member = *members_[worker];
    const std::int64_t limit =
        least ? member.next_step + (*least + staleness_ - member.clock) : kNoLimit;
    if (limit == member.told) continue;
    member.told = limit;
    out.limits.push_back({int(worker), limit});
  }
}

std::unique_ptr<Aggregation> make_aggregation(const AggregationSpec& spec) {
  // A staleness that no job reaches keeps the sums of clocks within 64 bits.
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
