#include "params/server/job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cores.h"
#include "params/protocol/placement.h"
#include "params/server/peer.h"
#include "params/shard/rule_label.h"
#include "params/steady_now.h"
#include "params/wire/variables.h"
#include "params/worker/ps_store.h"

namespace paceline {
namespace {

// Who connects and says nothing is closed after this.
constexpr Duration kHandshakeTimeout = std::chrono::seconds(10);
// A worker that starts beside others may be loading its data while they make all the steps.
constexpr Duration kLateStart = std::chrono::seconds(5);
constexpr Duration kCloseTimeout = std::chrono::seconds(2);
// Who means it says hello at once: when more have not, the one that came first makes room.
constexpr std::ptrdiff_t kMaxUnidentified = 64;
// More in a hello is a lie.
constexpr std::int32_t kMostWorkers = 1 << 16;

int apply_threads(const ServerOptions& options) {
  return options.threads > 0 ? options.threads : cores_of_machine();
}

bool is_unidentified(const ServerPeer& peer) { return peer.standing.worker < 0; }

}  // namespace

ServerJob::ServerJob(const ServerOptions& options, std::function<void()> wake)
    : options_(options),
      wake_(std::move(wake)),
      incarnation_(std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count())),
      membership_(membership_options(), steady_now()),
      waits_for_job_(options.any_job),
      apply_pool_(apply_threads(options)),
      states_(options.spec.workers.size()),
      saving_(options.sees_files) {
  membership_.set_last_step(options.last_step);
}

ServerJob::~ServerJob() = default;

MembershipOptions ServerJob::membership_options() const {
  return {.workers = int(options_.spec.workers.size()),
          .join_timeout = options_.join_timeout,
          .late_start = std::min(kLateStart, options_.join_timeout),
          .warm_steps = kUntimedSteps};
}

void ServerJob::say(const std::string& line) const {
  if (options_.say) options_.say(line);
}

void ServerJob::warn(const std::string& line) const {
  if (options_.warn) options_.warn(line);
}

std::string ServerJob::id() const {
  const std::lock_guard lock(mutex_);
  return waits_for_job_ ? std::string() : options_.cluster_id;
}

Receiver* ServerJob::accept(std::shared_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  const auto is_strange = [](const auto& peer) {
    return is_unidentified(*peer) && !peer->standing.refused;
  };
  if (std::ranges::count_if(peers_, is_strange) >= kMaxUnidentified) {
    ServerPeer& first = **std::ranges::find_if(peers_, is_strange);
    first.standing.outnumbered = true;
    give_up(first, "more connections have come than can be listened to, and it has said nothing");
  }
  peers_.push_back(std::make_unique<ServerPeer>(*this, std::move(connection), steady_now()));
  wake_();
  return peers_.back().get();
}

std::string ServerJob::why_not(const Hello& hello) const {
  if (hello.version != kProtocolVersion) {
    return fmt::format("protocol version {} here, {} there", kProtocolVersion, hello.version);
  }
  if (hello.job != "worker") {
    return fmt::format("a ps serves workers; the other is {}:{}", hello.job, hello.index);
  }
  if (hello.cluster_id != options_.cluster_id) {
    return fmt::format("cluster id '{}' here, '{}' there", options_.cluster_id, hello.cluster_id);
  }
  if (hello.ps != options_.task.index) {
    return fmt::format("this is {}, the other takes it for ps:{}", name(), hello.ps);
  }
  const int workers = int(options_.spec.workers.size());
  if (hello.workers != 0 && hello.workers != workers) {
    return fmt::format("the cluster has {} workers here, {} there", workers, hello.workers);
  }
  return {};
}

// A job that nobody is connected to is left to workers that come back, unless another one comes, or
// they come with other variables.
bool ServerJob::serves_another(const Hello& hello) const {
  if (!options_.any_job || waits_for_job_) return false;
  const bool other_variables = hello.fingerprint != fingerprint_ && membership_.connected() == 0;
  return given_up_ || hello.cluster_id != options_.cluster_id || other_variables;
}

void ServerJob::adopt(const Hello& hello) {
  waits_for_job_ = false;
  options_.cluster_id = hello.cluster_id;
  options_.task = {TaskId::Job::kPs, hello.ps};
  options_.spec.workers.resize(std::size_t(hello.workers));
  fingerprint_ = hello.fingerprint;
  membership_ = Membership(membership_options(), steady_now());
  states_.assign(options_.spec.workers.size(), {});
  say(fmt::format("job {} begins: {} worker{}, and this is {}", options_.cluster_id, hello.workers,
                  hello.workers == 1 ? "" : "s", name()));
}

void ServerJob::turn_away(ServerPeer& peer) {
  if (membership_.connected() == 0) given_up_ = true;
  peer.standing.refused = true;
  peer.replies().send(MessageType::kBusy,
                      encode_text(fmt::format("which serves job {}", options_.cluster_id)));
  closing_.push_back(&peer);
  wake_();
}

std::string ServerJob::greet(ServerPeer& peer, const Hello& hello, bool& busy) {
  const std::lock_guard lock(mutex_);
  busy = hello.version == kProtocolVersion && serves_another(hello);
  if (busy) {
    turn_away(peer);
    return {};
  }
  const bool adopts = waits_for_job_ && hello.version == kProtocolVersion &&
                      hello.job == "worker" && hello.workers > 0 && hello.workers <= kMostWorkers &&
                      hello.ps >= 0;
  if (adopts) adopt(hello);
  if (std::string why = why_not(hello); !why.empty()) return why;
  bool replaced = false;
  std::string why = membership_.join(hello.index, hello.incarnation, steady_now(), replaced);
  if (!why.empty()) return why;
  for (const auto& other : peers_) {
    if (replaced && other->standing.worker == hello.index && !other->standing.closed) {
      closing_.push_back(other.get());
    }
  }
  peer.standing.worker = hello.index;
  peer.standing.incarnation = hello.incarnation;
  peer.standing.spin = hello.spin;
  if (hello.spin) ++spinning_;
  peer.replies().send(MessageType::kWelcome,
                      encode(Welcome{.incarnation = incarnation_, .epoch = membership_.epoch()}));
  wake_();
  return {};
}

void ServerJob::refuse(ServerPeer& peer, const std::string& why) {
  const std::lock_guard lock(mutex_);
  refuse_locked(peer, why);
}

void ServerJob::refuse_locked(ServerPeer& peer, const std::string& why) {
  peer.standing.refused = true;
  closing_.push_back(&peer);
  try {
    peer.replies().send(MessageType::kRefuse,
                        encode_text(fmt::format("{} refuses: {}", name(), why)));
  } catch (const Error&) {
    // It has let too much pile up to be told of it.
  }
  warn(fmt::format("refused {}: {}", peer.text(), why));
  wake_();
}

// The chief's list counts. Another worker's may come first, and is then compared when that comes.
void ServerJob::declare(ServerPeer& peer, Declare declare) {
  const std::lock_guard lock(mutex_);
  if (peer.standing.agreed || peer.standing.declared)
    throw Error(ErrorCode::kDataLoss, "[ps] the variables are declared twice");
  const bool chief = peer.standing.worker == 0;
  peer.standing.declared = std::move(declare);
  if (chief && !declared_) take_declaration(*peer.standing.declared);
  if (!declared_) return;
  for (const auto& other : peers_) {
    if (!other->standing.declared || other->standing.closed) continue;
    tell(*other, [&] { check_variables(*other); });
  }
  wake_();
}

void ServerJob::take_declaration(Declare declare) {
  shard_ = std::make_unique<Shard>(declare.variables, declare.pieces, options_.task.index,
                                   apply_pool_, options_.after_reads);
  for (std::size_t i = 0; options_.timeline != nullptr && i < shard_->size(); ++i) {
    labels_.push_back(options_.timeline->label(rule_label(shard_->at(i).variable())));
  }
  if (options_.placed) options_.placed(placement_text(declare.variables, declare.pieces));
  if (declare.last_step > 0) membership_.set_last_step(declare.last_step);
  declared_ = std::move(declare);
}

void ServerJob::check_variables(ServerPeer& peer) {
  const Declare theirs = std::move(*peer.standing.declared);
  peer.standing.declared.reset();
  const std::string task = fmt::format("worker:{}", peer.standing.worker);
  const std::string difference =
      first_difference(declared_->variables, "the chief", theirs.variables, task);
  if (!difference.empty()) return refuse_locked(peer, "other variables: " + difference);
  if (theirs.pieces != declared_->pieces) {
    return refuse_locked(peer, fmt::format("the chief places {} pieces, {} places {} otherwise",
                                           declared_->pieces.size(), task, theirs.pieces.size()));
  }
  agree(peer);
}

void ServerJob::agree(ServerPeer& peer) {
  peer.standing.agreed = true;
  peer.replies().share(kMemoryOfValues, shard_->values());
  peer.replies().send(MessageType::kDeclared,
                      encode(Declared{.initialised = initialised_,
                                      .changed_after_reads = shard_->changed_after_reads()}));
  if (initialised_) tell_initialised(peer);
  if (counts_steps()) peer.replies().send(MessageType::kJobState, encode(told_));
}

Shard& ServerJob::shard_for(ServerPeer& peer, bool initialised) {
  const std::lock_guard lock(mutex_);
  if (!peer.standing.agreed) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] the variables are not agreed on yet");
  }
  if (initialised && !initialised_) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] the variables are not initialised yet");
  }
  return *shard_;
}

void ServerJob::initialise(ServerPeer& peer, std::int64_t global_step) {
  shard_for(peer, false);
  const std::lock_guard lock(mutex_);
  if (peer.standing.worker != 0) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] only the chief initialises");
  }
  initialised_ = true;
  membership_.set_global_step(global_step);
  peer.replies().send(MessageType::kWritten, {});
  for (const auto& other : peers_) {
    if (!other->standing.agreed || other->standing.closed) continue;
    tell(*other, [&] { tell_initialised(*other); });
  }
}

bool ServerJob::begin_step(ServerPeer& peer, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (!bytes_before_) {
    bytes_before_ = bytes_locked();
    use_.start();
  }
  return membership_.begin_step(peer.standing.worker, peer.standing.incarnation, step);
}

std::int64_t ServerJob::end_step(ServerPeer& peer, bool counts) {
  const std::lock_guard lock(mutex_);
  if (counts) ++applied_;
  const std::int64_t global_step =
      membership_.end_step(peer.standing.worker, peer.standing.incarnation, counts);
  tell_job_state(steady_now());
  const std::int64_t every = options_.progress_every.steps;
  if (counts && every > 0 && global_step % every == 0) wake_();
  return global_step;
}

std::int64_t ServerJob::global_step() const {
  const std::lock_guard lock(mutex_);
  return membership_.global_step();
}

void ServerJob::set_done(ServerPeer& peer) {
  const std::lock_guard lock(mutex_);
  membership_.set_done(peer.standing.worker, peer.standing.incarnation);
  tell_job_state(steady_now());
}

void ServerJob::say_goodbye(ServerPeer& peer) {
  const std::lock_guard lock(mutex_);
  peer.standing.left = true;
  membership_.say_goodbye(peer.standing.worker, peer.standing.incarnation, steady_now());
  tell_job_state(steady_now());
  wake_();
}

void ServerJob::closed(ServerPeer& peer, const Error& error) {
  const std::lock_guard lock(mutex_);
  ServerPeer::Standing& standing = peer.standing;
  const Traffic& traffic = peer.traffic();
  bytes_gone_.sent += traffic.bytes_sent;
  bytes_gone_.received += traffic.bytes_received;
  standing.closed = true;
  standing.declared.reset();
  if (standing.spin) --spinning_;
  if (standing.worker >= 0) {
    membership_.lose(standing.worker, standing.incarnation, steady_now());
    tell_job_state(steady_now());
  }
  const bool expected = standing.left || standing.refused;
  if (!expected) warn(fmt::format("lost {}: {}", peer.text(), error.what()));
  wake_();
}

void ServerJob::let_go(ServerPeer& peer) {
  const std::lock_guard lock(mutex_);
  peer.standing.gone = true;
  if (is_unidentified(peer)) wake_();
}

ServerJob::Bytes ServerJob::bytes_locked() const {
  Bytes bytes = bytes_gone_;
  for (const auto& peer : peers_) {
    if (peer->standing.closed) continue;
    bytes.sent += peer->traffic().bytes_sent;
    bytes.received += peer->traffic().bytes_received;
  }
  return bytes;
}

ServerJob::Bytes ServerJob::bytes() const {
  const std::lock_guard lock(mutex_);
  const Bytes now = bytes_locked(), before = bytes_before_.value_or(now);
  return {now.sent - before.sent, now.received - before.received};
}

void ServerJob::tell_job_state(TimePoint time) {
  const JobState state = membership_.job_state(time);
  if (!counts_steps() || state == told_) return;
  told_ = state;
  for (const auto& peer : peers_) {
    const ServerPeer::Standing& standing = peer->standing;
    if (!standing.agreed || standing.left || standing.closed) continue;
    tell(*peer, [&] { peer->replies().send(MessageType::kJobState, encode(state)); });
  }
}

void ServerJob::give_up(ServerPeer& peer, const std::string& why) {
  warn(fmt::format("gives up {}: {}", peer.text(), why));
  peer.standing.refused = true;
  closing_.push_back(&peer);
  wake_();
}

TimePoint ServerJob::turn(TimePoint time) {
  std::vector<ServerPeer*> closing;
  TimePoint next;
  {
    const std::lock_guard lock(mutex_);
    tell_job_state(time);
    forget_unidentified();
    next = waits_for_job_ ? TimePoint::max() : membership_.next_change(time);
    for (const auto& peer : peers_) {
      const ServerPeer::Standing& standing = peer->standing;
      if (!is_unidentified(*peer) || standing.closed || standing.refused) continue;
      const TimePoint timeout = standing.accepted + kHandshakeTimeout;
      if (time >= timeout) closing_.push_back(peer.get());
      if (time < timeout) next = std::min(next, timeout);
    }
    closing.swap(closing_);
  }
  // Outside the lock: closing ends in on_closed, which takes it.
  for (ServerPeer* peer : closing) {
    const Duration patience = peer->standing.outnumbered ? Duration() : kCloseTimeout;
    peer->replies().close(Deadline::after(patience));
  }
  return next;
}

// With the lock. A member stays: who watches a value, and who saves, may still name it.
void ServerJob::forget_unidentified() {
  std::erase_if(peers_, [&](const auto& peer) {
    return peer->standing.gone && is_unidentified(*peer) &&
           std::ranges::find(closing_, peer.get()) == closing_.end();
  });
}

Membership::End ServerJob::end(TimePoint time) const {
  const std::lock_guard lock(mutex_);
  if (waits_for_job_) return Membership::End::kNotYet;
  return given_up_ ? Membership::End::kAbandoned : membership_.end(time);
}

bool ServerJob::given_up() const {
  const std::lock_guard lock(mutex_);
  return given_up_;
}

std::string ServerJob::members() const {
  const std::lock_guard lock(mutex_);
  return membership_.text();
}

}  // namespace paceline
