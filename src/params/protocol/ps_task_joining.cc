// PsTask: workers come, come back, take each other's place, and are refused. The handshake carries
// the protocol version, job, cluster id, task, incarnation, membership epoch and a fingerprint of
// the variables. A contribution carries (worker, incarnation, step), and a ps applies it at most
// once.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/plain_text.h"
#include "base/printed.h"
#include "params/protocol/cluster_difference.h"
#include "params/protocol/ps_task.h"
#include "params/wire/travelling_type.h"

namespace paceline {
namespace {

// More in a hello is a lie.
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

// A job that nobody is connected to is left to workers that come back, unless another one comes, or
// they come with other variables.
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

// The values that the worker trained with are lost: it must begin again as a new incarnation.
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
  peer.spin = hello.spin;
  peer.flags = hello.flags;
  if (hello.spin) ++spinning_;
  welcome(id, peer, hello, out);
}

// Messages of older connections count; those that were not handled there are sent again.
void PsTask::welcome(PeerId id, const Peer& peer, const Hello& hello, Outbox& out) {
  out.send(id, MessageType::kWelcome,
           Welcome{.incarnation = options_.incarnation,
                   .epoch = membership_.epoch(),
                   .handled = peer.handled});
  out.add(Outbox::GoOn{id, hello.handled});
}

// It is known by its incarnation: a worker whose first welcome was lost does not know that it has
// joined.
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
    // Which messages of its older connection are handled is known only when that has ended.
    out.close(other, Duration());
    turn_away(id, peers_.at(id), "where its older connection has not ended yet", out);
    return true;
  }
  if (!membership_.has_left(hello.index, hello.incarnation)) return false;
  // Its goodbye was handled, and the connection ended before the worker heard so.
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
  // A refused peer may have let too much pile up to be told so.
  if (found == peers_.end() || std::exchange(found->second.refused, true)) return;
  out.warn("gives up ", id, ": " + why);
  out.close(id, kCloseTimeout);
}

}  // namespace paceline
