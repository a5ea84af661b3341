#include "params/protocol/rounds.h"

#include <algorithm>
#include <utility>

namespace paceline {

Fate RoundsAggregation::arrived(int, std::int64_t round) {
  return round >= open_ ? Fate::kKeep : Fate::kDrop;
}

void RoundsAggregation::ended(int worker, std::int64_t round, AggregationOutbox& out) {
  if (round >= open_) out.whole.push_back({worker, round});
}

void RoundsAggregation::closed(std::int64_t round, std::vector<int> contributors,
                               AggregationOutbox& out) {
  if (round != open_) return;
  ++open_;
  out.sums.push_back({round, std::move(contributors)});
}

RoundCoordinator::RoundCoordinator(int shards, int workers, int k)
    : shards_(shards), k_(k), workers_(std::size_t(workers)) {}

bool RoundCoordinator::is_whole(const Contributor& worker, std::int64_t round) const {
  const auto found = worker.has.find(round);
  return found != worker.has.end() && int(found->second.size()) == shards_;
}

std::int64_t RoundCoordinator::joined(int worker, std::uint64_t incarnation) {
  Contributor& it = workers_[std::size_t(worker)];
  if (std::exchange(it.incarnation, incarnation) != incarnation) {
    std::erase_if(it.has, [&](const auto& given) { return !is_whole(it, given.first); });
  }
  it.member = true;
  std::int64_t first = open_;
  while (is_whole(it, first)) ++first;
  return first;
}

void RoundCoordinator::left(int worker, std::vector<RoundClosed>& out) {
  workers_[std::size_t(worker)].member = false;
  close_full(out);
}

// Shards may hold contributions of different incarnations of one worker to the same round: only
// those of the last count.
void RoundCoordinator::whole(int shard, int worker, std::uint64_t incarnation, std::int64_t round,
                             std::vector<RoundClosed>& out) {
  Contributor& it = workers_[std::size_t(worker)];
  if (round < open_ || incarnation != it.incarnation) return;
  it.has[round].insert(shard);
  close_full(out);
}

// Contributions that came early for the next round may be all that it needs.
void RoundCoordinator::close_full(std::vector<RoundClosed>& out) {
  while (close_one(out)) {
  }
}

bool RoundCoordinator::close_one(std::vector<RoundClosed>& out) {
  std::vector<int> contributors;
  bool awaits = false;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    if (is_whole(workers_[worker], open_)) {
      contributors.push_back(int(worker));
    } else if (workers_[worker].member) {
      awaits = true;
    }
  }
  if (contributors.empty() || (int(contributors.size()) < k_ && awaits)) return false;
  for (Contributor& worker : workers_) worker.has.erase(open_);
  out.push_back({open_++, std::move(contributors)});
  return true;
}

}  // namespace paceline
