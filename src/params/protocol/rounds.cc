#include "params/protocol/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/clip_scale.h"

namespace paceline {
namespace {

[[noreturn]] void fail_commit(const std::string& what) {
  throw Error(ErrorCode::kDataLoss, "[ps] a commit " + what);
}

}  // namespace

RoundCoordinator::RoundCoordinator(const RoundOptions& options)
    : options_(options),
      enough_(options.replicas > 0 ? options.replicas : options.workers),
      workers_(std::size_t(options.workers)),
      awaited_(options.workers),
      open_(options.first_round) {}

void RoundCoordinator::count(Worker& worker) {
  const bool joins = worker.joins || (worker.fresh && open_ > options_.first_round);
  const bool waits = worker.given && is_whole(worker);
  const bool awaited = !waits && worker.standing != Standing::kAway;
  const Part part = joins     ? Part::kNone
                    : waits   ? Part::kWhole
                    : awaited ? Part::kAwaited
                              : Part::kNone;
  const Part before = std::exchange(worker.part, part);
  whole_ += int(part == Part::kWhole) - int(before == Part::kWhole);
  awaited_ += int(part == Part::kAwaited) - int(before == Part::kAwaited);
}

int RoundCoordinator::members() const {
  return int(std::ranges::count(workers_, Standing::kMember, &Worker::standing));
}

std::vector<int> RoundCoordinator::absent() const {
  std::vector<int> absent;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].standing == Standing::kAbsent) absent.push_back(int(i));
  }
  return absent;
}

void RoundCoordinator::joined(int index, std::uint64_t incarnation, Decisions& out) {
  Worker& worker = workers_[std::size_t(index)];
  if (std::exchange(worker.incarnation, incarnation) != incarnation) {
    // A whole contribution may still count, since the workers may already have committed it.
    const bool may_count = options_.workers_commit && worker.given && is_whole(worker);
    if (worker.given && !may_count) displace(taken(worker), out);
    worker.fresh = !options_.workers_commit;
    worker.withdrawn = -1;
  }
  worker.standing = Standing::kMember;
  count(worker);
}

RoundContribution RoundCoordinator::taken(Worker& worker) {
  worker.joins = false;
  return *std::exchange(worker.given, std::nullopt);
}

void RoundCoordinator::displace(const RoundContribution& contribution, Decisions& out) const {
  RoundDecision& decision = out.emplace_back();
  decision.round = open_;
  decision.displaced = {contribution};
}

void RoundCoordinator::left(int index, Decisions& out) {
  Worker& worker = workers_[std::size_t(index)];
  worker.standing = Standing::kAway;
  count(worker);
  close_full(out);
}

bool RoundCoordinator::forget_unless_whole(int index, std::uint64_t incarnation, Decisions& out) {
  Worker& worker = workers_[std::size_t(index)];
  if (worker.incarnation != incarnation) return false;
  if (worker.part == Part::kWhole) return true;
  worker.incarnation = 0;
  if (worker.given) displace(taken(worker), out);
  count(worker);
  return false;
}

void RoundCoordinator::stop_waiting(Decisions& out) {
  for (Worker& worker : workers_) {
    if (worker.standing == Standing::kAbsent) worker.standing = Standing::kAway;
    count(worker);
  }
  close_full(out);
}

// Shards may hold contributions of several incarnations of a worker. Only those of the last
// incarnation count: if a shard names another incarnation, the shards are told to forget that
// contribution.
//
// A contribution may name a round that is not open yet. Its worker then read its values before a ps
// was lost, and has not heard of the loss. Such a contribution is forgotten, too.
bool RoundCoordinator::whole(int shard, const RoundContribution& contribution, Decisions& out,
                             bool skipped) {
  Worker& worker = workers_[std::size_t(contribution.worker)];
  if (contribution.incarnation != worker.incarnation || contribution.round > open_) {
    displace(contribution, out);
    return false;
  }
  if (worker.given && worker.given->incarnation != contribution.incarnation) {
    displace(taken(worker), out);
  }
  if (!worker.given || worker.given->step != contribution.step) {
    worker.given = contribution;
    worker.on.assign(std::size_t(options_.shards), false);
    worker.shards = 0;
    worker.skipped = worker.joins = false;
    count(worker);
  }
  worker.skipped = worker.skipped || skipped;
  if (worker.on[std::size_t(shard)]) return false;
  worker.on[std::size_t(shard)] = true;
  ++worker.shards;
  if (!is_whole(worker)) return false;
  const bool late = contribution.round < open_ && options_.late == LateContribution::kDrop;
  const bool mixed = std::exchange(worker.fresh, false) && open_ > options_.first_round;
  worker.joins = mixed && contribution.round > options_.first_round;
  count(worker);
  const bool useless = late || mixed || worker.withdrawn == contribution.step;
  if (useless && !worker.joins) {
    drop(worker, out);
    return false;
  }
  close_full(out);
  return options_.workers_commit;
}

void RoundCoordinator::drop(Worker& worker, Decisions& out) {
  RoundDecision& decision = out.emplace_back();
  decision.round = open_;
  decision.dropped = {taken(worker)};
  count(worker);
}

void RoundCoordinator::close_full(Decisions& out) {
  if (options_.workers_commit) return;
  bool answers = whole_ == 0 && awaited_ == 0;
  while (close_one(out)) answers = true;
  if (!answers) return;
  for (Worker& worker : workers_) {
    if (worker.joins) drop(worker, out);
  }
}

// If late contributions are dropped, every contribution that is whole when the round closes is
// among its contributors, so none remains for the next round.
bool RoundCoordinator::close_one(Decisions& out) {
  if (whole_ == 0 || (whole_ < enough_ && awaited_ > 0)) return false;
  RoundDecision decision;
  decision.closes = true;
  decision.round = open_;
  for (const Worker& worker : workers_) {
    if (worker.part != Part::kWhole) continue;
    (worker.skipped ? decision.dropped : decision.contributors).push_back(*worker.given);
  }
  close(std::move(decision), out);
  return true;
}

void RoundCoordinator::close(RoundDecision decision, Decisions& out) {
  for (const auto* list : {&decision.contributors, &decision.dropped}) {
    for (const RoundContribution& it : *list) {
      Worker& worker = workers_[std::size_t(it.worker)];
      taken(worker);
      count(worker);
    }
  }
  for (const RoundContribution& it : decision.contributors) {
    workers_[std::size_t(it.worker)].counted = it.incarnation;
  }
  ++open_;
  out.push_back(std::move(decision));
}

// Two groups of workers that lost each other may commit the same round. The first commit counts.
// The contributions of the other group are dropped, by which its members learn that their commit
// does not count.
//
// There is one more case: a member's commit arrives here, but its message to the other members is
// lost, and they make the step again without this member. Their contributions have counted, but
// together with more contributions than they believe. The contributors in the answer tell them so.
void RoundCoordinator::commit(int index, std::int64_t round,
                              std::span<const std::int32_t> contributors, Decisions& out) {
  const bool counted = round == open_ - 1 && std::ranges::binary_search(committed_, index);
  if (counted && !std::ranges::equal(contributors, committed_)) {
    for (const std::int32_t other : contributors) workers_[std::size_t(other)].counted = 0;
  }
  if (round < open_) return;
  if (round > open_) fail_commit(fmt::format("of round {} while {} is open", round, open_));
  RoundDecision decision;
  decision.closes = true;
  decision.round = round;
  for (const std::int32_t contributor : contributors) {
    const Worker& worker = workers_[std::size_t(contributor)];
    if (!worker.given || !is_whole(worker)) {
      fail_commit(fmt::format("of round {} with the contribution of worker:{}, which is not here",
                              round, contributor));
    }
    (worker.skipped ? decision.dropped : decision.contributors).push_back(*worker.given);
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const bool counts = std::ranges::binary_search(contributors, std::int32_t(i));
    if (workers_[i].given && is_whole(workers_[i]) && !counts) {
      decision.dropped.push_back(*workers_[i].given);
    }
  }
  committed_.assign(contributors.begin(), contributors.end());
  close(std::move(decision), out);
}

bool RoundCoordinator::trains(int index) const {
  const Worker& worker = workers_[std::size_t(index)];
  return worker.standing == Standing::kMember && worker.counted == worker.incarnation &&
         std::ranges::binary_search(committed_, std::int32_t(index));
}

void RoundCoordinator::withdraw(int index, std::uint64_t incarnation, std::int64_t step,
                                Decisions& out) {
  Worker& worker = workers_[std::size_t(index)];
  if (worker.incarnation != incarnation) return;
  worker.withdrawn = step;
  const bool given = worker.given && worker.given->incarnation == incarnation &&
                     worker.given->step == step && is_whole(worker);
  if (given) drop(worker, out);
}

void RoundNorms::expect(std::int64_t round, float clip_norm) {
  rounds_[round] = {clip_norm, std::vector<std::optional<double>>(std::size_t(shards_))};
}

std::optional<RoundScale> RoundNorms::add(int shard, const RoundSquares& squares) {
  const auto found = rounds_.find(squares.round);
  if (found == rounds_.end()) return {};
  Round& round = found->second;
  round.squares[std::size_t(shard)] = squares.sum;
  std::vector<double> all;
  for (const std::optional<double>& part : round.squares) {
    if (!part) return {};
    all.push_back(*part);
  }
  const float scale = clip_scale_of(norm_of(all), round.clip_norm);
  rounds_.erase(found);
  return RoundScale{squares.round, scale};
}

}  // namespace paceline
