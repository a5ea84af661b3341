#include "params/protocol/ps_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printed.h"
#include "params/protocol/seconds_text.h"

namespace paceline {
namespace {

// A connection that says nothing is closed after this.
constexpr Duration kHandshakeTimeout = std::chrono::seconds(10);
// A worker that starts beside others may be loading its data while they make all the steps.
constexpr Duration kLateStart = std::chrono::seconds(5);
// An honest peer says hello at once: when more have not, the one that came first makes room.
constexpr std::ptrdiff_t kMaxUnidentified = 64;

}  // namespace

PsTask::PsTask(PsTaskOptions options, TakeVariables take_variables, TimePoint now)
    : options_(std::move(options)),
      take_variables_(std::move(take_variables)),
      membership_(membership_options(), now),
      waits_for_job_(options_.any_job),
      trainers_(std::size_t(options_.workers), Outbox::kNobody),
      states_(std::size_t(options_.workers)) {
  membership_.set_last_step(options_.last_step);
}

MembershipOptions PsTask::membership_options() const {
  return {.workers = options_.workers,
          .join_timeout = options_.join_timeout,
          .late_start = std::min(kLateStart, options_.join_timeout),
          .warm_steps = options_.warm_steps,
          .first_epoch = options_.first_epoch};
}

std::string PsTask::name() const { return fmt::format("ps:{}", options_.ps); }

PsTask::Peer& PsTask::peer_of(PeerId id) {
  const auto found = peers_.find(id);
  if (found != peers_.end()) return found->second;
  throw Error(ErrorCode::kFailedPrecondition, "[ps] the connection has ended");
}

int PsTask::shard(PeerId peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() || found->second.refused ? -1 : found->second.shard;
}

int PsTask::worker(PeerId peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() || found->second.refused ? -1 : found->second.worker;
}

void PsTask::accepted(PeerId peer, TimePoint now, Outbox& out) {
  const auto waits = [](const auto& entry) {
    return entry.second.unidentified() && !entry.second.refused;
  };
  if (std::ranges::count_if(peers_, waits) >= kMaxUnidentified) {
    const PeerId first = std::ranges::find_if(peers_, waits)->first;
    peers_.at(first).refused = true;
    out.warn("gives up ", first,
             ": more connections have come than can be listened to, and it has said nothing");
    out.close(first, Duration());
  }
  peers_[peer].accepted = now;
}

void PsTask::received(PeerId id, const ControlMessage& message, TimePoint now, Outbox& out) {
  Peer& peer = peer_of(id);
  if (peer.unidentified() && message.type != MessageType::kHello) {
    throw Error(ErrorCode::kDataLoss, "[ps] " + name_of(message.type) + " before a hello");
  }
  if (peer.shard >= 0) return on_shard_message(peer, message, out);
  switch (message.type) {
    case MessageType::kHello:
      return on_hello(id, peer, message.as<Hello>(), now, out);
    case MessageType::kDeclare:
      return on_declare(id, peer, message.as<Declare>(), out);
    case MessageType::kWriteEnd:
      return on_write_end(id, peer, message.as<std::int64_t>(), now, out);
    case MessageType::kFindFile:
      return on_find_file(id, message.as<FindFile>(), out);
    case MessageType::kMark:
      return on_mark(id, message.step, out);
    case MessageType::kSaveShard:
      check_agreed(id, true);
      check_is_chief(id, message.type);
      return out.add(Outbox::Save{id, message.as<std::string>(), message.step});
    case MessageType::kTaskState:
      return on_task_state(peer, message.as<StateBytes>(), message.step, out);
    case MessageType::kDone:
      return on_done(peer, now, out);
    case MessageType::kGoodbye:
      return on_goodbye(peer, now, out);
    case MessageType::kEndTraining:
      return on_end_training(id, peer, now, out);
    case MessageType::kAskProgress:
      return on_ask_progress(id, peer, out);
    case MessageType::kProgress:
      return on_progress(peer, message.as<std::string>(), out);
    case MessageType::kBeginAgain:
      return on_begin_again(id, message.as<BeginAgain>(), out);
    case MessageType::kAskRecords:
      return on_ask_records(id, peer, message.as<RecordWish>(), out);
    case MessageType::kReadsRecords:
      return on_reads_records(id, peer, std::int64_t(message.step), message.as<std::int64_t>(),
                              out);
    case MessageType::kCommitted:
      return on_committed(id, message.as<CommittedRound>(), out);
    case MessageType::kWithdraw:
      return on_withdraw(peer, std::int64_t(message.step), out);
    case MessageType::kRoundOpen:
      return on_round_open(id, peer, std::int64_t(message.step), out);
    default:
      throw Error(ErrorCode::kDataLoss, "[ps] unexpected message " + name_of(message.type));
  }
}

// A task's state says where it was when the checkpoint was written; a worker that was restarted
// later begins anew. Nobody is told who was replaced and whose connection is still open: it would
// take the place of its successor.
void PsTask::tell_initialised(PeerId id, Peer& peer, Outbox& out) {
  if (membership_.is_displaced(peer.worker, peer.incarnation)) return;
  const std::int64_t own_step = membership_.applied(peer.worker);
  if (peer.is_cut_off()) {
    peer.trained = true;  // once it is back
  } else if (!peer.trains) {
    begin_to_train(id, peer, out);
    tell_limits(out);
  }
  if (knows_state(peer.worker)) {
    out.send(id, MessageType::kTaskState, states_[std::size_t(peer.worker)].bytes);
  }
  out.send(id, MessageType::kInitialised,
           Initialised{.global_step = membership_.global_step(), .own_step = own_step});
}

void PsTask::begin_to_train(PeerId id, Peer& peer, Outbox& out) {
  peer.trains = true;
  trainers_[std::size_t(peer.worker)] = id;
  aggregation_->joined(peer.worker, membership_.applied(peer.worker), decided_);
  if (membership_.done(peer.worker)) aggregation_->done(peer.worker, decided_);
  join_rounds(peer, out);
}

Fate PsTask::begin_step(PeerId id, std::int64_t step, bool reads_now, const StepBegin& begin) {
  Peer& peer = peer_of(id);
  check_agreed(id, true);
  if (!membership_.begin_step(peer.worker, peer.incarnation, step, reads_now)) return Fate::kDrop;
  const Fate fate = aggregation_->arrived(peer.worker, step);
  if (fate == Fate::kKeep) give(id, peer, step, begin);
  return fate;
}

std::int64_t PsTask::end_step(PeerId id, std::int64_t step, Fate fate, TimePoint now, Outbox& out,
                              bool skipped) {
  Peer& peer = peer_of(id);
  if (fate == Fate::kKeep) {
    end_giving(peer, skipped, out);
    return membership_.global_step();
  }
  const StepDone done = membership_.end_step(peer.worker, peer.incarnation, fate == Fate::kApply);
  if (fate == Fate::kApply && peer.trains) aggregation_->ended(peer.worker, step, decided_);
  if (fate == Fate::kApply) counts_records(peer.worker, peer.incarnation, step, true, out);
  tell_job_state(now, out);
  if (counts_steps() || in_rounds()) {
    out.send(id, MessageType::kStepDone, done, std::uint64_t(step));
  }
  tell_limits(out);
  return done.global_step;
}

void PsTask::trains_no_more(Peer& peer, Outbox& out) {
  if (!std::exchange(peer.trains, false)) return;
  trainers_[std::size_t(peer.worker)] = Outbox::kNobody;
  aggregation_->left(peer.worker, decided_);
  tell_limits(out);
  leave_rounds(peer.worker, out);
}

// It may make untimed steps until all are done, and its limit goes on to rise.
void PsTask::on_done(Peer& peer, TimePoint now, Outbox& out) {
  membership_.set_done(peer.worker, peer.incarnation);
  if (in_rounds()) {
    trains_no_more(peer, out);
  } else if (peer.trains) {
    aggregation_->done(peer.worker, decided_);
    tell_limits(out);
  }
  if (shares_) {
    PsRecordSharing::Answers answers;
    shares_->set_done(peer.worker, peer.incarnation, answers);
    give_records(answers, out);
  }
  tell_job_state(now, out);
}

void PsTask::on_goodbye(Peer& peer, TimePoint now, Outbox& out) {
  peer.left = true;
  membership_.say_goodbye(peer.worker, peer.incarnation, now);
  trains_no_more(peer, out);
  reads_no_more(peer, false, out);
  tell_job_state(now, out);
}

void PsTask::on_end_training(PeerId id, const Peer& peer, TimePoint now, Outbox& out) {
  check_agreed(id, true);
  if (!membership_.job_state(now).ended && counts_steps()) {
    out.say(fmt::format("worker:{} ends the training of all workers at global step {}", peer.worker,
                        membership_.global_step()));
  }
  membership_.end_training();
  tell_job_state(now, out);
}

bool PsTask::closed(PeerId id, const Ended& ended, TimePoint now, Outbox& out) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return false;
  Peer& peer = found->second;
  if (peer.shard >= 0) return closed_shard(found, ended, now);
  const bool expected = peer.left || peer.refused || peer.replaced || begins_again_;
  const bool may_come_back = !expected && !ended.broken && !peer.unidentified() &&
                             options_.reconnect_timeout > Duration(0);
  if (peer.spin) --spinning_;
  if (!expected) out.warn("lost ", id, ": " + ended.why + patience_text(may_come_back));
  if (!peer.unidentified()) {
    if (may_come_back) {
      membership_.cut_off(peer.worker, peer.incarnation, now);
    } else {
      membership_.lose(peer.worker, peer.incarnation, now);
    }
    peer.trained = peer.trains;
    trains_no_more(peer, out);
  }
  if (may_come_back) {
    peer.cut_at = now;
    peer.handled = ended.handled;
  } else {
    reads_no_more(peer, true, out);
    peers_.erase(found);
  }
  tell_job_state(now, out);
  return may_come_back;
}

std::string PsTask::patience_text(bool may_come_back) const {
  if (!may_come_back) return "";
  return fmt::format("; it may come back within {} (--reconnect-timeout)",
                     seconds_text(options_.reconnect_timeout));
}

TimePoint PsTask::give_up_lost(TimePoint now, Outbox& out) {
  TimePoint next = TimePoint::max();
  std::vector<PeerId> lost;
  for (const auto& [id, peer] : peers_) {
    if (!peer.is_cut_off() || peer.shard >= 0) continue;
    const TimePoint until = *peer.cut_at + options_.reconnect_timeout;
    if (now < until) {
      next = std::min(next, until);
      continue;
    }
    lost.push_back(id);
    membership_.lose(peer.worker, peer.incarnation, now);
    out.warn("gives up ", id,
             fmt::format(": it did not come back within {} (--reconnect-timeout)",
                         seconds_text(options_.reconnect_timeout)));
  }
  for (const PeerId id : lost) forget(id, out);
  return next;
}

void PsTask::tell_job_state(TimePoint now, Outbox& out) {
  const JobState state = membership_.job_state(now);
  if (!counts_steps() || state == told_) return;
  told_ = state;
  for (auto& [id, peer] : peers_) tell_job_state(id, peer, out);
}

// A worker that is cut off is told the state that holds when it is back, and none of those between.
void PsTask::tell_job_state(PeerId id, Peer& peer, Outbox& out) {
  if (!peer.takes_part() || peer.is_cut_off() || peer.told == told_) return;
  peer.told = told_;
  out.send(id, MessageType::kJobState, told_);
}

// Only the ps that counts steps tells them, so that all workers go by one count.
void PsTask::tell_limits(Outbox& out) {
  for (const AggregationOutbox::StepLimit& limit : decided_.limits) {
    const PeerId trainer = trainers_[std::size_t(limit.worker)];
    if (!counts_steps() || trainer == Outbox::kNobody) continue;
    out.send(trainer, MessageType::kStepLimit, limit.own_step);
  }
  decided_.clear();
}

TimePoint PsTask::tick(TimePoint now, Outbox& out) {
  tell_job_state(now, out);
  TimePoint next = std::min(give_up_lost(now, out), stop_waiting_for_absent(now, out));
  if (coordinator_search_) next = std::min(next, coordinator_search_->tick(now, out));
  if (!waits_for_job_) next = std::min(next, membership_.next_change(now));
  for (auto& [id, peer] : peers_) {
    if (!peer.unidentified() || peer.refused) continue;
    const TimePoint timeout = peer.accepted + kHandshakeTimeout;
    if (now < timeout) {
      next = std::min(next, timeout);
      continue;
    }
    peer.refused = true;
    out.warn("gives up ", id, ": it has said nothing since it connected");
    out.close(id, kCloseTimeout);
  }
  return next;
}

Membership::End PsTask::end(TimePoint now) const {
  if (waits_for_job_) return Membership::End::kNotYet;
  return given_up_ ? Membership::End::kAbandoned : membership_.end(now);
}

bool PsTask::ask_to_leave(Outbox& out) {
  bool somebody = false;
  for (const auto& [id, peer] : peers_) {
    if (!peer.takes_part()) continue;
    out.send(id, MessageType::kStop);
    somebody = somebody || !peer.is_cut_off();
  }
  return somebody;
}

}  // namespace paceline
