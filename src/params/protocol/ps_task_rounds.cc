// PsTask: synchronous rounds. ps 0 decides, and every ps carries its decisions out in their order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/printed.h"
#include "paceline/error.h"
#include "params/protocol/ps_task.h"

namespace paceline {
namespace {

// Tasks that are started together are all there within this. A worker that comes later joins then.
constexpr Duration kWaitForAbsent = std::chrono::seconds(30);
// More is a lie; it keeps sums of examples within 64 bits.
constexpr std::int64_t kMostExamples = std::int64_t{1} << 40;

[[noreturn]] void reject_round(const std::string& why) {
  throw Error(ErrorCode::kDataLoss, "[ps] " + why);
}

std::uint64_t contributors_of(const RoundDecision& decision) {
  std::vector<std::int32_t> workers;
  for (const RoundContribution& it : decision.contributors) workers.push_back(it.worker);
  return fingerprint_of(std::span<const std::int32_t>(workers));
}

}  // namespace

// The variables are initialised: the first round is the one after the global step of their values.
void PsTask::open_rounds(TimePoint now) {
  const AggregationSpec& spec = declared_->aggregation;
  givers_.assign(std::size_t(options_.workers), Outbox::kNobody);
  if (counts_steps()) {
    coordinator_ =
        std::make_unique<RoundCoordinator>(RoundOptions{.shards = spec.num_ps,
                                                        .workers = options_.workers,
                                                        .replicas = spec.replicas,
                                                        .late = spec.late,
                                                        .first_round = membership_.global_step(),
                                                        .workers_commit = spec.workers_commit});
    // The part that the workers keep has squares, like one more shard.
    norms_ = std::make_unique<RoundNorms>(spec.num_ps + (spec.workers_commit ? 1 : 0));
    if (!spec.workers_commit)
      waits_for_absent_ = now + std::min(kWaitForAbsent, options_.join_timeout);
    return;
  }
  coordinator_search_ =
      std::make_unique<CoordinatorSearch>(Hello{.version = kProtocolVersion,
                                                .role = "ps",
                                                .index = options_.ps,
                                                .cluster_id = options_.cluster_id,
                                                .incarnation = options_.incarnation,
                                                .ps = 0,
                                                .workers = options_.workers,
                                                .process = name(),
                                                .credentials = {}},
                                          now);
}

TimePoint PsTask::stop_waiting_for_absent(TimePoint now, Outbox& out) {
  if (!waits_for_absent_) return TimePoint::max();
  const std::vector<int> absent = coordinator_->absent();
  if (!absent.empty() && now < *waits_for_absent_) return *waits_for_absent_;
  waits_for_absent_.reset();
  if (absent.empty()) return TimePoint::max();
  out.say(fmt::format("rounds begin without worker:{}, which has not come",
                      fmt::join(absent, ", worker:")));
  RoundCoordinator::Decisions decisions;
  coordinator_->stop_waiting(decisions);
  decide(decisions, out);
  return TimePoint::max();
}

// Members.

void PsTask::join_rounds(const Peer& peer, Outbox& out) {
  if (!coordinator_) return;
  RoundCoordinator::Decisions decisions;
  coordinator_->joined(peer.worker, peer.incarnation, decisions);
  decide(decisions, out);
  if (waits_for_absent_ || workers_commit()) return;
  out.say(fmt::format("worker:{} takes part in rounds from {} on: {}", peer.worker,
                      coordinator_->open_round(), counted(coordinator_->members(), "worker")));
}

void PsTask::leave_rounds(int worker, Outbox& out) {
  if (!coordinator_) return;
  RoundCoordinator::Decisions decisions;
  coordinator_->left(worker, decisions);
  decide(decisions, out);
  if (membership_.reached_last_step() || membership_.training_ended() || workers_commit()) return;
  out.say(fmt::format("rounds go on without worker:{}: {}", worker,
                      counted(coordinator_->members(), "worker")));
}

// Contributions.

void PsTask::check_contribution(const RoundContribution& it) const {
  if (it.worker < 0 || it.worker >= options_.workers) {
    reject_round(fmt::format("a contribution of worker:{}, who is not in the cluster", it.worker));
  }
  if (it.round < 0) reject_round(fmt::format("a contribution to round {}", it.round));
  if (it.examples < 0 || it.examples > kMostExamples) {
    reject_round(fmt::format("a contribution of {} examples", it.examples));
  }
  if (!std::isfinite(it.clip_norm) || it.clip_norm < 0) {
    reject_round(fmt::format("a contribution that is clipped by the norm {}", it.clip_norm));
  }
}

void PsTask::give(PeerId id, Peer& peer, std::int64_t step, const StepBegin& begin) {
  if (peer.given) {
    reject_round(fmt::format("step {} begins before round {} has taken step {}", step,
                             peer.given->round, peer.given->step));
  }
  const RoundContribution given{.worker = peer.worker,
                                .incarnation = peer.incarnation,
                                .step = step,
                                .round = begin.round,
                                .examples = begin.examples,
                                .clip_norm = begin.clip_norm};
  check_contribution(given);
  if (coordinator_ && given.round > coordinator_->open_round()) {
    reject_round(fmt::format("a contribution to round {}, and {} is open", given.round,
                             coordinator_->open_round()));
  }
  peer.given = given;
  peer.given_whole = false;
  givers_[std::size_t(peer.worker)] = id;
}

void PsTask::end_giving(Peer& peer, bool skipped, Outbox& out) {
  if (!peer.given || std::exchange(peer.given_whole, true)) return;
  if (!coordinator_) return out.send(Outbox::kCoordinator, MessageType::kWhole, *peer.given);
  take_whole(0, *peer.given, skipped, out);
}

void PsTask::take_whole(int shard, const RoundContribution& it, bool skipped, Outbox& out) {
  RoundCoordinator::Decisions decisions;
  const bool is_given = coordinator_->whole(shard, it, decisions, skipped);
  decide(decisions, out);
  if (is_given) {
    out.send(givers_[std::size_t(it.worker)], MessageType::kGiven, {}, std::uint64_t(it.step));
  }
}

// Rounds that the workers commit.

void PsTask::on_committed(PeerId id, const CommittedRound& committed, Outbox& out) {
  check_agreed(id, true);
  const std::vector<std::int32_t>& who = committed.contributors;
  const bool ascending = std::ranges::adjacent_find(who, std::ranges::greater_equal{}) == who.end();
  const bool workers = !who.empty() && who.front() >= 0 && who.back() < options_.workers;
  if (!coordinator_ || !workers_commit() || !ascending || !workers) {
    reject_round(fmt::format("round {} is not the workers {}' to commit", committed.round,
                             fmt::join(who, ", ")));
  }
  RoundCoordinator::Decisions decisions;
  coordinator_->commit(worker(id), committed.round, who, decisions);
  if (decisions.empty()) return;
  decide(decisions, out);
  add_squares(declared_->aggregation.num_ps, {committed.round, committed.squares}, out);
}

void PsTask::on_withdraw(const Peer& peer, std::int64_t step, Outbox& out) {
  if (!coordinator_) return;
  RoundCoordinator::Decisions decisions;
  coordinator_->withdraw(peer.worker, peer.incarnation, step, decisions);
  decide(decisions, out);
}

// The answer follows all that was decided before, as values do.
void PsTask::on_round_open(PeerId id, Peer& peer, std::int64_t round, Outbox& out) {
  check_agreed(id, true);
  peer.awaits_round = round;
  Outbox::Decide nothing{};
  nothing.decision.round = membership_.global_step();
  tell_open_round(nothing);
  if (!nothing.open.empty()) out.add(std::move(nothing));
}

void PsTask::tell_open_round(Outbox::Decide& decide) {
  for (auto& [id, peer] : peers_) {
    if (!peer.awaits_round || *peer.awaits_round > membership_.global_step()) continue;
    peer.awaits_round.reset();
    decide.open.push_back({id, membership_.global_step()});
  }
}

void PsTask::send_to_shards(MessageType type, const ControlMessage::Body& body, Outbox& out) {
  for (const auto& [id, peer] : peers_) {
    if (peer.shard >= 0 && !peer.replaced) out.send(id, type, body);
  }
}

void PsTask::decide(const RoundCoordinator::Decisions& decisions, Outbox& out) {
  for (const RoundDecision& decision : decisions) {
    const float clip_norm =
        decision.contributors.empty() ? 0 : decision.contributors.front().clip_norm;
    if (clip_norm > 0) norms_->expect(decision.round, clip_norm);
    send_to_shards(MessageType::kDecided, decision, out);
    carry_out(decision, out);
  }
}

void PsTask::carry_out(const RoundDecision& decision, Outbox& out) {
  Outbox::Decide action{decision, {}, {}};
  const std::int64_t round = decision.round;
  if (decision.closes) {
    membership_.close_round();
    tell_open_round(action);
  }
  const std::uint64_t contributors =
      coordinator_ && workers_commit() ? contributors_of(decision) : 0;
  for (const RoundContribution& it : decision.contributors) {
    membership_.decide_step(it.worker, it.step);
    counts_records(it.worker, it.incarnation, it.step, true, out);
    tell(it, {membership_.global_step(), round - it.round, contributors}, action);
  }
  for (const RoundContribution& it : decision.dropped) {
    membership_.decide_step(it.worker, it.step);
    const bool late = it.round < round;
    // One with NaN has used its records: given out again they would make another.
    const bool used = decision.closes && !late;
    counts_records(it.worker, it.incarnation, it.step, used, out);
    tell(it, {membership_.global_step(), late ? StepDone::kTooLate : StepDone::kAppliedBefore},
         action);
  }
  out.add(std::move(action));
}

void PsTask::tell(const RoundContribution& about, const StepDone& done, Outbox::Decide& decide) {
  const PeerId giver = givers_[std::size_t(about.worker)];
  const auto found = peers_.find(giver);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  if (peer.incarnation != about.incarnation || !peer.given || peer.given->step != about.step ||
      !peer.given_whole) {
    return;
  }
  peer.given.reset();
  decide.told.push_back({giver, std::uint64_t(about.step), done});
}

void PsTask::squares(const RoundSquares& squares, Outbox& out) {
  if (!coordinator_) return out.send(Outbox::kCoordinator, MessageType::kSquares, squares);
  add_squares(0, squares, out);
}

void PsTask::add_squares(int part, const RoundSquares& squares, Outbox& out) {
  const auto scale = norms_->add(part, squares);
  if (!scale) return;
  send_to_shards(MessageType::kScale, *scale, out);
  out.add(Outbox::Clip{*scale});
  if (!workers_commit()) return;
  for (const auto& [id, peer] : peers_) {
    if (peer.worker >= 0 && peer.takes_part()) out.send(id, MessageType::kScale, *scale);
  }
}

// The other ps tasks, as ps 0 sees them.

// One whose connection was cut comes back as the same incarnation.
void PsTask::on_shard_hello(PeerId id, Peer& peer, const Hello& hello, Outbox& out) {
  if (hello.version == kProtocolVersion && hello.ps_incarnation != 0 &&
      hello.ps_incarnation != options_.incarnation) {
    peer.refused = true;
    out.send(id, MessageType::kRestarted);
    return out.close(id, kCloseTimeout);
  }
  const bool takes_part = in_rounds() && counts_steps() && hello.index > 0 &&
                          hello.index < declared_->aggregation.num_ps;
  Hello as_worker = hello;
  if (takes_part) as_worker.role = "worker";
  const std::string why = why_not(as_worker);
  if (!why.empty()) return refuse(id, why, out);
  for (auto& [other, its] : peers_) {
    if (its.shard != hello.index || its.replaced || its.refused) continue;
    if (its.incarnation != hello.incarnation) {
      its.replaced = true;
      if (!its.is_cut_off()) out.close(other, Duration());
    } else if (its.is_cut_off()) {
      its.cut_at.reset();
      const PeerId back = other;
      peers_.erase(id);
      out.add(Outbox::Attach{id, back});
      return welcome(back, peers_.at(back), hello, out);
    } else {
      out.close(other, Duration());
      return turn_away(id, peer, "where its older connection has not ended yet", out);
    }
  }
  peer.shard = hello.index;
  peer.incarnation = hello.incarnation;
  welcome(id, peer, hello, out);
}

bool PsTask::closed_shard(std::map<PeerId, Peer>::iterator found, const Ended& ended,
                          TimePoint now) {
  Peer& peer = found->second;
  if (ended.broken || peer.replaced || peer.refused) {
    peers_.erase(found);
    return false;
  }
  peer.cut_at = now;
  peer.handled = ended.handled;
  return true;
}

void PsTask::on_shard_message(const Peer& peer, const ControlMessage& message, Outbox& out) {
  // It is of a job that is about to begin again, and nothing of that is of use.
  if (!coordinator_ || peer.replaced) return;
  if (message.type == MessageType::kWhole) {
    const RoundContribution& whole = message.as<RoundContribution>();
    check_contribution(whole);
    return take_whole(peer.shard, whole, false, out);
  }
  if (message.type != MessageType::kSquares) {
    reject_round("unexpected message " + name_of(message.type) + " of another ps");
  }
  add_squares(peer.shard, message.as<RoundSquares>(), out);
}

// ps 0, as the others see it.

void PsTask::coordinator_connected(Outbox& out) { coordinator_search_->connected(out); }

void PsTask::coordinator_failed(const std::string& why, TimePoint now) {
  coordinator_search_->connect_failed(why, now);
}

void PsTask::coordinator_closed(std::uint64_t handled, TimePoint now) {
  coordinator_search_->closed(handled, now);
}

void PsTask::from_coordinator(const ControlMessage& message, TimePoint now, Outbox& out) {
  if (message.type == MessageType::kScale) {
    return out.add(Outbox::Clip{message.as<RoundScale>()});
  }
  if (message.type != MessageType::kDecided) {
    return coordinator_search_->received(message, now, out);
  }
  const RoundDecision& decision = message.as<RoundDecision>();
  if (decision.closes && decision.round != membership_.global_step()) {
    reject_round(fmt::format("round {} is closed, and {} is open", decision.round,
                             membership_.global_step()));
  }
  for (const auto* list : {&decision.contributors, &decision.dropped, &decision.displaced}) {
    for (const RoundContribution& it : *list) check_contribution(it);
  }
  carry_out(decision, out);
}

}  // namespace paceline
