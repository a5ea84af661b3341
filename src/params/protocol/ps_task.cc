#include "params/protocol/ps_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/plain_text.h"
#include "base/printed.h"
#include "paceline/error.h"
#include "params/protocol/cluster_difference.h"
#include "params/protocol/flag_difference.h"
#include "params/protocol/seconds_text.h"
#include "params/wire/task_state.h"
#include "params/wire/travelling_type.h"
#include "params/wire/variables.h"

namespace paceline {
namespace {

// A ps closes a connection on which no hello arrives within this time.
constexpr Duration kHandshakeTimeout = std::chrono::seconds(10);
// How long the job waits, at its end, for a worker that has never joined: it may still be loading
// its data while the others make all the steps.
constexpr Duration kLateStart = std::chrono::seconds(5);
// An honest peer says hello at once. If more peers than this have not said hello, the oldest of
// them is closed.
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

// A worker's state says where the worker was when the checkpoint was written. The ps tells it only
// while the worker has made no step since: a worker that is restarted later begins anew. A replaced
// worker whose connection is still open is told nothing, since it would otherwise take the place of
// its successor.
void PsTask::tell_initialised(PeerId id, Peer& peer, Outbox& out) {
  if (membership_.is_displaced(peer.worker, peer.incarnation)) return;
  const std::int64_t own_step = membership_.applied(peer.worker);
  if (peer.is_cut_off()) {
    peer.trained = true;  // the worker trains once it is back
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

// The worker may make untimed steps until all workers are done, so its limit keeps rising.
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

// A worker that is cut off is told nothing now. Once it is back, it is told the state of that time.
void PsTask::tell_job_state(PeerId id, Peer& peer, Outbox& out) {
  if (!peer.takes_part() || peer.is_cut_off() || peer.told == told_) return;
  peer.told = told_;
  out.send(id, MessageType::kJobState, told_);
}

// Only the ps that counts steps tells the limits, so that all workers follow one count.
void PsTask::tell_limits(Outbox& out) {
  for (const StepLimit& limit : decided_) {
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

// PsTask: workers join, come back, take each other's place, and are refused. The handshake carries
// the protocol version, job, cluster id, task, incarnation, membership epoch and a fingerprint of
// the variables. A contribution carries (worker, incarnation, step), and a ps applies it at most
// once.

namespace {

// No job has more workers: a hello that names more is refused.
constexpr std::int32_t kMostWorkers = 1 << 16;

}  // namespace

std::string PsTask::why_not(const Hello& hello) const {
  if (hello.version != kProtocolVersion) {
    return fmt::format("protocol version {} here, {} there", kProtocolVersion, hello.version);
  }
  if (hello.role != "worker") {
    return fmt::format("a ps serves workers; the other is {}:{}", hello.role, hello.index);
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
  if (hello.kept > kMostKept || (hello.kept > 0 && hello.wire == DType::kUInt8)) {
    return fmt::format("contributions of {} keep {} of each {} numbers",
                       travelling_name(hello.wire), hello.kept, kScaledBlock);
  }
  return {};
}

// True when the hello names another job, or when it has other variables and no worker is connected
// or may come back. Otherwise the ps keeps the present job, to which workers may come back.
bool PsTask::serves_another(const Hello& hello) const {
  if (!options_.any_job || waits_for_job_) return false;
  const bool other_variables = hello.fingerprint != fingerprint_ && membership_.deserted();
  return given_up_ || hello.cluster_id != options_.cluster_id || other_variables;
}

void PsTask::adopt(const Hello& hello, TimePoint now, Outbox& out) {
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

void PsTask::turn_away(PeerId id, Peer& peer, std::string why, Outbox& out) {
  peer.refused = true;
  out.send(id, MessageType::kBusy, std::move(why));
  out.close(id, kCloseTimeout);
}

// The worker trained with values that are lost. The message tells it to begin again as a new
// incarnation.
void PsTask::tell_restarted(PeerId id, Peer& peer, const Hello& hello, Outbox& out) {
  peer.refused = true;
  out.send(id, MessageType::kRestarted);
  out.say(fmt::format("tells worker:{} that it was restarted", hello.index));
  out.close(id, kCloseTimeout);
}

void PsTask::on_begin_again(PeerId id, const BeginAgain& again, Outbox& out) {
  check_agreed(id, false);
  check_is_chief(id, MessageType::kBeginAgain);
  for (const std::int32_t other : again.unreached) {
    const bool known = other >= 0 && other < options_.workers;
    if (!known || !coordinator_ || !workers_commit() || !coordinator_->trains(other)) continue;
    return refuse(id,
                  fmt::format("worker:{} trains, and worker:0 does not reach it: nobody can begin "
                              "the training again meanwhile",
                              other),
                  out);
  }
  if (std::exchange(begins_again_, true)) return;
  out.warn("forgets all values, as ", id,
           " asks: others are lost, and training goes on from a checkpoint");
}

void PsTask::on_hello(PeerId id, Peer& peer, const Hello& hello, TimePoint now, Outbox& out) {
  if (!peer.unidentified()) throw Error(ErrorCode::kDataLoss, "[ps] a second hello");
  if (hello.role == "ps") return on_shard_hello(id, peer, hello, out);
  if (hello.version == kProtocolVersion && hello.ps_incarnation != 0 &&
      (begins_again_ || hello.ps_incarnation != options_.incarnation)) {
    return tell_restarted(id, peer, hello, out);
  }
  if (hello.version == kProtocolVersion && serves_another(hello)) {
    if (membership_.deserted()) given_up_ = true;
    return turn_away(id, peer, fmt::format("it serves job {}", options_.cluster_id), out);
  }
  const bool adopts = waits_for_job_ && hello.version == kProtocolVersion &&
                      hello.role == "worker" && hello.workers > 0 &&
                      hello.workers <= kMostWorkers && hello.ps >= 0;
  if (adopts) adopt(hello, now, out);
  if (std::string why = why_not(hello); !why.empty()) return refuse(id, why, out);
  if (comes_back(id, hello, now, out)) return;
  if (std::string why = join(hello, now, out); !why.empty()) return refuse(id, why, out);
  peer.worker = hello.index;
  peer.incarnation = hello.incarnation;
  peer.flags = hello.flags;
  welcome(id, peer, hello, out);
}

// Tells the worker how many of its messages this ps has handled, on all its connections. The worker
// sends the others again.
void PsTask::welcome(PeerId id, const Peer& peer, const Hello& hello, Outbox& out) {
  out.send(id, MessageType::kWelcome,
           Welcome{.incarnation = options_.incarnation,
                   .epoch = membership_.epoch(),
                   .handled = peer.handled});
  out.add(Outbox::GoOn{id, hello.handled});
}

// Recognises, by its incarnation, a worker that comes back: if the worker's first welcome was lost,
// the worker itself does not know that it has joined.
bool PsTask::comes_back(PeerId id, const Hello& hello, TimePoint now, Outbox& out) {
  for (auto& [other, its] : peers_) {
    if (its.shard >= 0 || its.worker != hello.index || its.incarnation != hello.incarnation ||
        its.left || its.refused || its.replaced) {
      continue;
    }
    if (its.is_cut_off()) {
      take_back(other, id, hello, now, out);
      return true;
    }
    // Before the older connection has ended, the ps does not know which of the worker's messages it
    // has handled.
    out.close(other, Duration());
    turn_away(id, peers_.at(id), "where its older connection has not ended yet", out);
    return true;
  }
  if (!membership_.has_left(hello.index, hello.incarnation)) return false;
  // The ps handled the worker's goodbye, but the connection ended before the worker heard of that.
  peers_.at(id).refused = true;
  out.send(id, MessageType::kRefuse, name() + " has heard its goodbye");
  out.close(id, kCloseTimeout);
  return true;
}

void PsTask::take_back(PeerId id, PeerId by, const Hello& hello, TimePoint now, Outbox& out) {
  Peer& peer = peers_.at(id);
  membership_.come_back(peer.worker, peer.incarnation, now);
  peers_.erase(by);
  const std::chrono::duration<double> away = now - *peer.cut_at;
  peer.cut_at.reset();
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

// Returns why the worker may not join; empty: it has joined. A newer process of a worker ends the
// connection of the older process.
std::string PsTask::join(const Hello& hello, TimePoint now, Outbox& out) {
  if (membership_.is_displaced(hello.index, hello.incarnation)) return displaced_text(hello.index);
  if (hello.epoch != 0) return membership_.come_back(hello.index, hello.incarnation, now);
  bool replaced = false;
  std::string why = membership_.join(hello.index, hello.incarnation, now, replaced);
  if (!why.empty()) return why;
  processes_[hello.index] = plain_text(hello.process);
  displace(hello, out);
  return {};
}

void PsTask::displace(const Hello& hello, Outbox& out) {
  std::vector<PeerId> cut_off;
  for (auto& [id, peer] : peers_) {
    if (peer.worker != hello.index || std::exchange(peer.replaced, true)) continue;
    trains_no_more(peer, out);
    reads_no_more(peer, true, out);
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

std::string PsTask::displaced_text(int worker) const {
  return fmt::format("a newer worker:{} ({}) took this one's place", worker, processes_.at(worker));
}

void PsTask::forget(PeerId id, Outbox& out) {
  reads_no_more(peers_.at(id), true, out);
  peers_.erase(id);
  out.add(Outbox::Forget{id});
}

void PsTask::refuse(PeerId id, const std::string& why, Outbox& out) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  found->second.refused = true;
  out.send(id, MessageType::kRefuse, fmt::format("{} refuses: {}", name(), why));
  out.warn("refused ", id, ": " + why);
  out.close(id, kCloseTimeout);
}

void PsTask::refuse_workers(const std::string& why, Outbox& out) {
  std::vector<PeerId> workers;
  for (const auto& [id, peer] : peers_) {
    if (peer.worker >= 0 && !peer.refused) workers.push_back(id);
  }
  for (const PeerId id : workers) refuse(id, why, out);
}

void PsTask::give_up(PeerId id, const std::string& why, Outbox& out) {
  const auto found = peers_.find(id);
  // A peer that is about to be refused may also be given up, because it reads so slowly that even
  // the refusal cannot be sent.
  if (found == peers_.end() || std::exchange(found->second.refused, true)) return;
  out.warn("gives up ", id, ": " + why);
  out.close(id, kCloseTimeout);
}

// PsTask: the workers agree on the variables, and the chief initialises them. A ps builds no graph:
// it learns variables, slots and rules from the chief, so one ps serves any model.

void PsTask::check_agreed(PeerId peer, bool initialised) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.agreed) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] the variables are not agreed on yet");
  }
  if (initialised && !initialised_) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] the variables are not initialised yet");
  }
}

// The chief's list counts. If another worker's list arrives first, that list waits until the
// chief's list has arrived.
void PsTask::on_declare(PeerId, Peer& peer, const Declare& declare, Outbox& out) {
  if (peer.agreed || peer.declared) {
    throw Error(ErrorCode::kDataLoss, "[ps] the variables are declared twice");
  }
  peer.declared = declare;
  if (peer.worker == 0 && !declared_) take_declaration(peer, declare);
  if (!declared_) return;
  for (auto& [id, other] : peers_) {
    if (other.declared) check_declaration(id, other, out);
  }
}

void PsTask::take_declaration(const Peer& chief, const Declare& declare) {
  std::unique_ptr<Aggregation> aggregation = make_aggregation(declare.aggregation);
  changed_after_reads_ = take_variables_(declare);
  aggregation_ = std::move(aggregation);
  if (declare.shares_records && counts_steps()) {
    // With rounds or bounded staleness, a worker that waited for records would hold up the workers
    // that have some.
    const bool waits = declare.aggregation.kind == AggregationKind::kAsync;
    shares_ = std::make_unique<PsRecordSharing>(options_.workers, waits);
  }
  if (declare.last_step > 0) membership_.set_last_step(declare.last_step);
  declared_ = declare;
  flags_ = chief.flags;
}

void PsTask::check_declaration(PeerId id, Peer& peer, Outbox& out) {
  const Declare theirs = *std::exchange(peer.declared, std::nullopt);
  const std::string task = fmt::format("worker:{}", peer.worker);
  const std::string flags = flag_difference(flags_, "the chief", peer.flags, task);
  if (!flags.empty()) return refuse(id, flags, out);
  const std::string difference =
      first_difference(declared_->variables, "the chief", theirs.variables, task);
  if (!difference.empty()) return refuse(id, "other variables: " + difference, out);
  if (theirs.pieces != declared_->pieces) {
    return refuse(id,
                  fmt::format("the chief places {} pieces, {} places {} otherwise",
                              declared_->pieces.size(), task, theirs.pieces.size()),
                  out);
  }
  if (theirs.aggregation != declared_->aggregation) {
    return refuse(id,
                  fmt::format("the chief's --strategy is {}, that of {} is {}",
                              declared_->aggregation.str(), task, theirs.aggregation.str()),
                  out);
  }
  agree(id, peer, out);
}

void PsTask::agree(PeerId id, Peer& peer, Outbox& out) {
  peer.agreed = true;
  out.share_values(id);
  out.send(id, MessageType::kDeclared,
           Declared{.initialised = initialised_, .changed_after_reads = changed_after_reads_});
  if (initialised_) tell_initialised(id, peer, out);
  if (!counts_steps()) return;
  peer.told = told_;
  out.send(id, MessageType::kJobState, told_);
}

void PsTask::on_write_end(PeerId id, Peer& peer, std::int64_t global_step, TimePoint now,
                          Outbox& out) {
  check_agreed(id, false);
  if (peer.worker != 0) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] only the chief initialises");
  }
  initialised_ = true;
  membership_.set_global_step(global_step);
  if (in_rounds()) open_rounds(now);
  out.send(id, MessageType::kWritten);
  for (auto& [other, its] : peers_) {
    if (its.takes_part()) tell_initialised(other, its, out);
  }
}

// PsTask: synchronous rounds. ps 0 decides, and every ps carries its decisions out in their order.

namespace {

// How long the first round waits for workers that have not joined. Tasks that are started together
// all join within this time. A later worker joins in a later round.
constexpr Duration kWaitForAbsent = std::chrono::seconds(30);
// The most examples of a contribution; a larger count is refused. The limit keeps sums of examples
// within 64 bits.
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

// The variables are initialised: the first round follows the global step of their values.
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
    // The workers also tell the squares of the variables that they keep, as if they were one more
    // shard.
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

// The answer is sent once all earlier decisions are carried out, so that it follows the values of
// earlier rounds.
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
    // The records of a contribution with NaN count as used: a later step that read them would get
    // NaN again.
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

// If the connection to a ps was cut, the ps comes back as the same incarnation.
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
  // The message belongs to a job that is about to begin again, and is of no use in the new job.
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

// PsTask: ps 0 shares out the records of a data set.

void PsTask::on_ask_records(PeerId id, const Peer& peer, const RecordWish& wish, Outbox& out) {
  check_agreed(id, true);
  if (!shares_) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] no records are shared out in this job");
  }
  PsRecordSharing::Answers answers;
  shares_->joined(peer.worker, peer.incarnation, answers);
  shares_->ask(peer.worker, peer.incarnation, wish, answers);
  give_records(answers, out);
}

void PsTask::on_reads_records(PeerId id, const Peer& peer, std::int64_t step, std::int64_t records,
                              Outbox& out) {
  check_agreed(id, true);
  if (!shares_) return;
  PsRecordSharing::Answers answers;
  shares_->reads(peer.worker, peer.incarnation, step, records, answers);
  give_records(answers, out);
}

void PsTask::counts_records(int worker, std::uint64_t incarnation, std::int64_t step, bool counts,
                            Outbox& out) {
  if (!shares_) return;
  PsRecordSharing::Answers answers;
  if (counts) {
    shares_->counted(worker, incarnation, step, answers);
  } else {
    shares_->in_vain(worker, incarnation, step, answers);
  }
  give_records(answers, out);
}

// If the worker is lost, ps 0 forgets its contribution, unless the contribution is whole: a whole
// one may count even after its worker is lost.
void PsTask::reads_no_more(const Peer& peer, bool lost, Outbox& out) {
  if (!shares_ || peer.worker < 0) return;
  RoundCoordinator::Decisions decisions;
  const bool may_count =
      lost && coordinator_ &&
      coordinator_->forget_unless_whole(peer.worker, peer.incarnation, decisions);
  PsRecordSharing::Answers answers;
  shares_->left(peer.worker, peer.incarnation, may_count, answers);
  decide(decisions, out);
  give_records(answers, out);
}

// A worker that is cut off is sent its answer, too, and gets it once it is back.
void PsTask::give_records(const PsRecordSharing::Answers& answers, Outbox& out) {
  for (const PsRecordSharing::Answer& answer : answers) {
    const auto reads = std::ranges::find_if(peers_, [&](const auto& entry) {
      return entry.second.worker == answer.worker && entry.second.takes_part();
    });
    if (reads != peers_.end()) out.send(reads->first, MessageType::kRecords, answer.given);
  }
}

// PsTask: checkpoints, and each worker's own state.

void PsTask::check_is_chief(PeerId id, MessageType type) const {
  if (worker(id) == 0) return;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[ps] {} from worker:{}, not from the chief", name_of(type), worker(id)));
}

void PsTask::on_find_file(PeerId id, const FindFile& file, Outbox& out) {
  check_agreed(id, false);
  check_is_chief(id, MessageType::kFindFile);
  out.add(Outbox::Find{id, file});
}

void PsTask::on_mark(PeerId id, std::uint64_t save, Outbox& out) {
  check_agreed(id, true);
  check_is_chief(id, MessageType::kMark);
  SavedShard what;
  what.global_step = membership_.global_step();
  for (int worker = 0; worker < membership_.workers(); ++worker) {
    what.workers.push_back({membership_.applied(worker), false});
  }
  if (shares_) what.unused = shares_->unused().ranges();
  if (counts_steps()) ask_for_states(id, save, what, out);
  out.add(Outbox::Mark{id, std::move(what)});
}

// Asks only workers whose state after their last step is not known. The other workers may have
// ended their training, and would not answer.
void PsTask::ask_for_states(PeerId chief, std::uint64_t save, SavedShard& what, Outbox& out) {
  for (auto& [id, peer] : peers_) {
    if (peer.worker <= 0 || !peer.takes_part() || peer.is_cut_off()) continue;
    if (knows_state(peer.worker)) continue;
    out.send(id, MessageType::kAskState, {}, save);
    peer.state_asked = save;
    what.workers[std::size_t(peer.worker)].asked = true;
  }
  for (std::size_t worker = 1; worker < what.workers.size(); ++worker) {
    if (!knows_state(int(worker))) continue;
    out.send(chief, MessageType::kTaskState, states_[worker].bytes, save);
  }
}

bool PsTask::knows_state(int worker) const {
  const KnownState& known = states_[std::size_t(worker)];
  return known.bytes != nullptr && known.step == membership_.applied(worker);
}

void PsTask::on_task_state(Peer& peer, const StateBytes& bytes, std::uint64_t save, Outbox& out) {
  const TaskState state = decode_task_state(*bytes);
  const bool resumes = peer.worker == 0 && !initialised_;
  if (state.worker < 0 || state.worker >= membership_.workers() ||
      (!resumes && state.worker != peer.worker)) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[ps] a state of worker:{} from worker:{}", state.worker, peer.worker));
  }
  if (resumes) membership_.set_applied(state.worker, state.step);
  if (resumes && shares_) {
    if (auto unused = unused_of(state.position)) shares_->restore(std::move(*unused));
  }
  states_[std::size_t(state.worker)] = {state.step, bytes};
  const bool asked = save != 0 && save == std::exchange(peer.state_asked, 0);
  if (resumes || !asked) return;
  for (const auto& [id, other] : peers_) {
    if (other.worker == 0 && other.takes_part()) {
      out.send(id, MessageType::kTaskState, bytes, save);
    }
  }
}

// PsTask: the chief asks for the progress of the other workers; only ps 0 passes the question on.

// Asks only workers that have answered the previous question, so that questions do not pile up at a
// worker that stands still.
void PsTask::on_ask_progress(PeerId id, const Peer& chief, Outbox& out) {
  check_is_chief(id, MessageType::kAskProgress);
  if (!counts_steps() || chief.left) return;
  for (auto& [to, peer] : peers_) {
    if (peer.worker <= 0 || !peer.takes_part() || peer.is_cut_off() || peer.progress_asked)
      continue;
    peer.progress_asked = true;
    out.send(to, MessageType::kAskProgress);
  }
}

void PsTask::on_progress(Peer& peer, const std::string& text, Outbox& out) {
  if (!std::exchange(peer.progress_asked, false)) return;
  for (const auto& [id, other] : peers_) {
    if (other.worker != 0 || !other.takes_part()) continue;
    out.send(id, MessageType::kProgress, text, std::uint64_t(peer.worker) + 1);
  }
}

}  // namespace paceline
