#include "params/protocol/ps_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/plain_text.h"
#include "base/printed.h"
#include "params/protocol/cluster_difference.h"
#include "params/protocol/seconds_text.h"

namespace paceline {
namespace {

// A connection that says nothing is closed after this.
constexpr Duration kHandshakeTimeout = std::chrono::seconds(10);
// A worker that starts beside others may be loading its data while they make all the steps.
constexpr Duration kLateStart = std::chrono::seconds(5);
constexpr Duration kCloseTimeout = std::chrono::seconds(2);
// An honest peer says hello at once: when more have not, the one that came first makes room.
constexpr std::ptrdiff_t kMaxUnidentified = 64;
// More in a hello is a lie.
constexpr std::int32_t kMostWorkers = 1 << 16;

}  // namespace

PsJob::PsJob(PsJobOptions options, TakeVariables take_variables, TimePoint now)
    : options_(std::move(options)),
      take_variables_(std::move(take_variables)),
      membership_(membership_options(), now),
      waits_for_job_(options_.any_job),
      trainers_(std::size_t(options_.workers), Outbox::kNobody),
      states_(std::size_t(options_.workers)) {
  membership_.set_last_step(options_.last_step);
}

MembershipOptions PsJob::membership_options() const {
  return {.workers = options_.workers,
          .join_timeout = options_.join_timeout,
          .late_start = std::min(kLateStart, options_.join_timeout),
          .warm_steps = options_.warm_steps,
          .first_epoch = options_.first_epoch};
}

std::string PsJob::name() const { return fmt::format("ps:{}", options_.ps); }

PsJob::Peer& PsJob::peer_of(PeerId id) {
  const auto found = peers_.find(id);
  if (found != peers_.end()) return found->second;
  throw Error(ErrorCode::kFailedPrecondition, "[ps] the connection has ended");
}

int PsJob::shard(PeerId peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() || found->second.refused ? -1 : found->second.shard;
}

int PsJob::worker(PeerId peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() || found->second.refused ? -1 : found->second.worker;
}

void PsJob::accepted(PeerId peer, TimePoint now, Outbox& out) {
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

void PsJob::received(PeerId id, const ControlMessage& message, TimePoint now, Outbox& out) {
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
    case MessageType::kBeginAgain:
      return on_begin_again(id, out);
    default:
      throw Error(ErrorCode::kDataLoss, "[ps] unexpected message " + name_of(message.type));
  }
}

std::string PsJob::why_not(const Hello& hello) const {
  if (hello.version != kProtocolVersion) {
    return fmt::format("protocol version {} here, {} there", kProtocolVersion, hello.version);
  }
  if (hello.job != "worker") {
    return fmt::format("a ps serves workers; the other is {}:{}", hello.job, hello.index);
  }
  if (hello.cluster_id != options_.cluster_id) {
    const std::string other = cluster_difference(options_.cluster_id, hello.cluster_id);
    if (!other.empty()) return "the cluster has other addresses: " + other;
    return fmt::format("cluster id '{}' here, '{}' there", options_.cluster_id, hello.cluster_id);
  }
  if (hello.ps != options_.ps) {
    return fmt::format("this is {}, the other takes it for ps:{}", name(), hello.ps);
  }
  if (hello.workers != 0 && hello.workers != options_.workers) {
    return fmt::format("the cluster has {} here, {} there", counted(options_.workers, "worker"),
                       hello.workers);
  }
  return {};
}

// A job that nobody is connected to is left to workers that come back, unless another one comes, or
// they come with other variables.
bool PsJob::serves_another(const Hello& hello) const {
  if (!options_.any_job || waits_for_job_) return false;
  const bool other_variables = hello.fingerprint != fingerprint_ && membership_.deserted();
  return given_up_ || hello.cluster_id != options_.cluster_id || other_variables;
}

void PsJob::adopt(const Hello& hello, TimePoint now, Outbox& out) {
  waits_for_job_ = false;
  options_.cluster_id = hello.cluster_id;
  options_.ps = hello.ps;
  options_.workers = hello.workers;
  fingerprint_ = hello.fingerprint;
  membership_ = Membership(membership_options(), now);
  trainers_.assign(std::size_t(hello.workers), Outbox::kNobody);
  states_.assign(std::size_t(hello.workers), {});
  out.say(fmt::format("job {} begins: {} worker{}, and this is {}", options_.cluster_id,
                      hello.workers, hello.workers == 1 ? "" : "s", name()));
}

void PsJob::turn_away(PeerId id, Peer& peer, std::string why, Outbox& out) {
  peer.refused = true;
  out.send(id, MessageType::kBusy, std::move(why));
  out.close(id, kCloseTimeout);
}

// The values that the worker trained with are lost: it must begin again as a new incarnation.
void PsJob::tell_restarted(PeerId id, Peer& peer, const Hello& hello, Outbox& out) {
  peer.refused = true;
  out.send(id, MessageType::kRestarted);
  out.say(fmt::format("tells worker:{} that it was restarted", hello.index));
  out.close(id, kCloseTimeout);
}

void PsJob::on_begin_again(PeerId id, Outbox& out) {
  check_agreed(id, false);
  check_is_chief(id, MessageType::kBeginAgain);
  if (std::exchange(begins_again_, true)) return;
  out.warn("forgets all values, as ", id,
           " asks: another ps has lost its own, and training goes on from a checkpoint");
}

void PsJob::on_hello(PeerId id, Peer& peer, const Hello& hello, TimePoint now, Outbox& out) {
  if (!peer.unidentified()) throw Error(ErrorCode::kDataLoss, "[ps] a second hello");
  if (hello.job == "ps") return on_shard_hello(id, peer, hello, out);
  if (hello.version == kProtocolVersion && hello.ps_incarnation != 0 &&
      hello.ps_incarnation != options_.incarnation) {
    return tell_restarted(id, peer, hello, out);
  }
  if (hello.version == kProtocolVersion && serves_another(hello)) {
    if (membership_.deserted()) given_up_ = true;
    return turn_away(id, peer, fmt::format("which serves job {}", options_.cluster_id), out);
  }
  const bool adopts = waits_for_job_ && hello.version == kProtocolVersion &&
                      hello.job == "worker" && hello.workers > 0 && hello.workers <= kMostWorkers &&
                      hello.ps >= 0;
  if (adopts) adopt(hello, now, out);
  if (std::string why = why_not(hello); !why.empty()) return refuse(id, why, out);
  if (comes_back(id, hello, now, out)) return;
  if (std::string why = join(hello, now, out); !why.empty()) return refuse(id, why, out);
  peer.worker = hello.index;
  peer.incarnation = hello.incarnation;
  peer.spin = hello.spin;
  if (hello.spin) ++spinning_;
  welcome(id, peer, hello, out);
}

// Messages of older connections count; those that were not handled there are sent again.
void PsJob::welcome(PeerId id, const Peer& peer, const Hello& hello, Outbox& out) {
  out.send(id, MessageType::kWelcome,
           Welcome{.incarnation = options_.incarnation,
                   .epoch = membership_.epoch(),
                   .handled = peer.handled});
  out.add(Outbox::GoOn{id, hello.handled});
}

// By its incarnation: a worker whose first welcome was lost does not know that it has joined.
bool PsJob::comes_back(PeerId id, const Hello& hello, TimePoint now, Outbox& out) {
  for (auto& [other, its] : peers_) {
    if (its.shard >= 0 || its.worker != hello.index || its.incarnation != hello.incarnation ||
        its.left || its.refused || its.replaced) {
      continue;
    }
    if (its.is_cut_off()) {
      take_back(other, id, hello, now, out);
      return true;
    }
    // Which messages of its older connection are handled is known only when that has ended.
    out.close(other, Duration());
    turn_away(id, peers_.at(id), "where its older connection has not ended yet", out);
    return true;
  }
  return false;
}

void PsJob::take_back(PeerId id, PeerId by, const Hello& hello, TimePoint now, Outbox& out) {
  Peer& peer = peers_.at(id);
  membership_.come_back(peer.worker, peer.incarnation, now);
  peers_.erase(by);
  const std::chrono::duration<double> away = now - *peer.cut_at;
  peer.cut_at.reset();
  if (peer.spin) ++spinning_;
  out.add(Outbox::Attach{by, id});
  out.say(fmt::format("worker:{} is back after {:.1f} s", peer.worker, away.count()));
  welcome(id, peer, hello, out);
  if (std::exchange(peer.trained, false)) {
    begin_to_train(id, peer, out);
    tell_limits(out);
  }
  tell_job_state(now, out);
  tell_job_state(id, peer, out);
}

// A newer incarnation closes the connection of the older.
std::string PsJob::join(const Hello& hello, TimePoint now, Outbox& out) {
  if (membership_.is_displaced(hello.index, hello.incarnation)) return displaced_text(hello.index);
  if (hello.epoch != 0) return membership_.come_back(hello.index, hello.incarnation, now);
  bool replaced = false;
  std::string why = membership_.join(hello.index, hello.incarnation, now, replaced);
  if (!why.empty()) return why;
  processes_[hello.index] = plain_text(hello.process);
  displace(hello, out);
  return {};
}

void PsJob::displace(const Hello& hello, Outbox& out) {
  std::vector<PeerId> cut_off;
  for (auto& [id, peer] : peers_) {
    if (peer.worker != hello.index || std::exchange(peer.replaced, true)) continue;
    trains_no_more(peer, out);
    out.warn("ends ", id,
             fmt::format(": a newer process ({}) took its place", processes_.at(hello.index)));
    if (peer.is_cut_off()) {
      cut_off.push_back(id);
    } else {
      out.send(id, MessageType::kRefuse, displaced_text(hello.index));
      out.close(id, kCloseTimeout);
    }
  }
  for (const PeerId id : cut_off) forget(id, out);
}

std::string PsJob::displaced_text(int worker) const {
  return fmt::format("a newer worker:{} ({}) took this one's place", worker, processes_.at(worker));
}

void PsJob::forget(PeerId id, Outbox& out) {
  peers_.erase(id);
  out.add(Outbox::Forget{id});
}

void PsJob::refuse(PeerId id, const std::string& why, Outbox& out) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  found->second.refused = true;
  out.send(id, MessageType::kRefuse, fmt::format("{} refuses: {}", name(), why));
  out.warn("refused ", id, ": " + why);
  out.close(id, kCloseTimeout);
}

void PsJob::give_up(PeerId id, const std::string& why, Outbox& out) {
  const auto found = peers_.find(id);
  // A refused peer may have let too much pile up to be told so.
  if (found == peers_.end() || std::exchange(found->second.refused, true)) return;
  out.warn("gives up ", id, ": " + why);
  out.close(id, kCloseTimeout);
}

// A task's state says where it was when the checkpoint was written; a worker that was restarted
// later begins anew.
void PsJob::tell_initialised(PeerId id, Peer& peer, Outbox& out) {
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

void PsJob::begin_to_train(PeerId id, Peer& peer, Outbox& out) {
  peer.trains = true;
  trainers_[std::size_t(peer.worker)] = id;
  aggregation_->joined(peer.worker, membership_.applied(peer.worker), decided_);
  join_rounds(peer, out);
}

Fate PsJob::begin_step(PeerId id, std::int64_t step, bool reads_now, const StepBegin& begin) {
  Peer& peer = peer_of(id);
  check_agreed(id, true);
  if (!membership_.begin_step(peer.worker, peer.incarnation, step, reads_now)) return Fate::kDrop;
  const Fate fate = aggregation_->arrived(peer.worker, step);
  if (fate == Fate::kKeep) give(id, peer, step, begin);
  return fate;
}

std::int64_t PsJob::end_step(PeerId id, std::int64_t step, Fate fate, TimePoint now, Outbox& out) {
  Peer& peer = peer_of(id);
  if (fate == Fate::kKeep) {
    end_giving(peer, out);
    return membership_.global_step();
  }
  const StepDone done = membership_.end_step(peer.worker, peer.incarnation, fate == Fate::kApply);
  if (fate == Fate::kApply && peer.trains) aggregation_->ended(peer.worker, step, decided_);
  tell_job_state(now, out);
  if (counts_steps() || in_rounds()) {
    out.send(id, MessageType::kStepDone, done, std::uint64_t(step));
  }
  tell_limits(out);
  return done.global_step;
}

void PsJob::trains_no_more(Peer& peer, Outbox& out) {
  if (!std::exchange(peer.trains, false)) return;
  trainers_[std::size_t(peer.worker)] = Outbox::kNobody;
  aggregation_->left(peer.worker, decided_);
  tell_limits(out);
  leave_rounds(peer.worker, out);
}

void PsJob::on_done(Peer& peer, TimePoint now, Outbox& out) {
  membership_.set_done(peer.worker, peer.incarnation);
  trains_no_more(peer, out);
  tell_job_state(now, out);
}

void PsJob::on_goodbye(Peer& peer, TimePoint now, Outbox& out) {
  peer.left = true;
  membership_.say_goodbye(peer.worker, peer.incarnation, now);
  trains_no_more(peer, out);
  tell_job_state(now, out);
}

void PsJob::on_end_training(PeerId id, const Peer& peer, TimePoint now, Outbox& out) {
  check_agreed(id, true);
  if (!membership_.job_state(now).ended && counts_steps()) {
    out.say(fmt::format("worker:{} ends the training of all workers at global step {}", peer.worker,
                        membership_.global_step()));
  }
  membership_.end_training();
  tell_job_state(now, out);
}

bool PsJob::closed(PeerId id, const Ended& ended, TimePoint now, Outbox& out) {
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
    peers_.erase(found);
  }
  tell_job_state(now, out);
  return may_come_back;
}

std::string PsJob::patience_text(bool may_come_back) const {
  if (!may_come_back) return "";
  return fmt::format("; it may come back within {} (--reconnect-timeout)",
                     seconds_text(options_.reconnect_timeout));
}

TimePoint PsJob::give_up_lost(TimePoint now, Outbox& out) {
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

void PsJob::tell_job_state(TimePoint now, Outbox& out) {
  const JobState state = membership_.job_state(now);
  if (!counts_steps() || state == told_) return;
  told_ = state;
  for (auto& [id, peer] : peers_) tell_job_state(id, peer, out);
}

// A worker that is cut off is told the state that holds when it is back, and none of those between.
void PsJob::tell_job_state(PeerId id, Peer& peer, Outbox& out) {
  if (!peer.takes_part() || peer.is_cut_off() || peer.told == told_) return;
  peer.told = told_;
  out.send(id, MessageType::kJobState, told_);
}

// Only the ps that counts steps tells them, so that all workers go by one count.
void PsJob::tell_limits(Outbox& out) {
  for (const AggregationOutbox::StepLimit& limit : decided_.limits) {
    const PeerId trainer = trainers_[std::size_t(limit.worker)];
    if (!counts_steps() || trainer == Outbox::kNobody) continue;
    out.send(trainer, MessageType::kStepLimit, limit.own_step);
  }
  decided_.clear();
}

TimePoint PsJob::tick(TimePoint now, Outbox& out) {
  tell_job_state(now, out);
  TimePoint next = std::min(give_up_lost(now, out), stop_waiting_for_absent(now, out));
  if (coordinator_link_) next = std::min(next, coordinator_link_->tick(now, out));
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

Membership::End PsJob::end(TimePoint now) const {
  if (waits_for_job_) return Membership::End::kNotYet;
  return given_up_ ? Membership::End::kAbandoned : membership_.end(now);
}

bool PsJob::ask_to_leave(Outbox& out) {
  bool somebody = false;
  for (const auto& [id, peer] : peers_) {
    if (!peer.takes_part()) continue;
    out.send(id, MessageType::kStop);
    somebody = somebody || !peer.is_cut_off();
  }
  return somebody;
}

}  // namespace paceline
