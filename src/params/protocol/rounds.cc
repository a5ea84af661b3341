#include "params/protocol/rounds.h"

#include <algorithm>
#include <utility>

namespace paceline {

Fate RoundsAggregation::arrived(int, std::int64_t round) {
  return round == open_ ? Fate::kKeep : Fate::kDrop;
}

void RoundsAggregation::ended(int worker, std::int64_t round, AggregationOutbox& out) {
  if (round == open_) out.whole.push_back({worker, round});
}

void RoundsAggregation::closed(std::int64_t round, std::vector<int> contributors,
                               AggregationOutbox& out) {
  if (round != open_) return;
  ++open_;
  out.sums.push_back({round, std::move(contributors)});
}

RoundCoordinator::RoundCoordinator(int shards, int workers, int k)
    : shards_(shards), k_(k), members_(std::size_t(workers)), has_(std::size_t(workers)) {}

void RoundCoordinator::joined(int worker, std::vector<RoundClosed>& out) {
  members_[std::size_t(worker)] = true;
  close_if_full(out);
}

void RoundCoordinator::left(int worker, std::vector<RoundClosed>& out) {
  members_[std::size_t(worker)] = false;
  std::set<int>& shards = has_[std::size_t(worker)];
  if (int(shards.size()) < shards_) shards.clear();
  close_if_full(out);
}

// A shard may say so after the worker has left: what is not whole everywhere by then counts
// nowhere.
void RoundCoordinator::whole(int shard, int worker, std::int64_t round,
                             std::vector<RoundClosed>& out) {
  if (round != open_ || !members_[std::size_t(worker)]) return;
  has_[std::size_t(worker)].insert(shard);
  close_if_full(out);
}

void RoundCoordinator::close_if_full(std::vector<RoundClosed>& out) {
  const int members = int(std::ranges::count(members_, true));
  std::vector<int> contributors;
  for (std::size_t worker = 0; worker < has_.size(); ++worker) {
    if (int(has_[worker].size()) == shards_) contributors.push_back(int(worker));
  }
  if (contributors.empty() || int(contributors.size()) < std::min(k_, members)) return;
  for (std::set<int>& shards : has_) shards.clear();
  out.push_back({open_++, std::move(contributors)});
}

}  // namespace paceline
