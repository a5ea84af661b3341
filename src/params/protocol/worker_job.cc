#include "params/protocol/worker_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace paceline {
namespace {

constexpr Duration kSayEvery = std::chrono::seconds(10);
constexpr Duration kFirstBackOff = std::chrono::milliseconds(20);
// A worker is to be there within a second of its ps.
constexpr Duration kLongestBackOff = std::chrono::milliseconds(500);

}  // namespace

WorkerJob::WorkerJob(WorkerJobOptions options, TimePoint now)
    : options_(std::move(options)),
      deadline_(now + options_.join_timeout),
      next_say_(now + options_.say_after),
      peers_(options_.ps.size()),
      step_limit_(options_.declare.aggregation.kind == AggregationKind::kAsync
                      ? Aggregation::kNoLimit
                      : -1) {
  for (Peer& peer : peers_) peer.back_off = kFirstBackOff;
}

bool WorkerJob::joined() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.phase == Phase::kAgreed; });
}

bool WorkerJob::initialised() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.initialised; });
}

bool WorkerJob::all_closed() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.closed; });
}

const WorkerJob::Peer* WorkerJob::behind() const {
  const auto unwelcome = [](const Peer& peer) { return peer.phase < Phase::kWelcomed; };
  auto found = std::ranges::find_if(peers_, unwelcome);
  if (found == peers_.end()) {
    found =
        std::ranges::find_if(peers_, [](const Peer& peer) { return peer.phase < Phase::kAgreed; });
  }
  return found == peers_.end() ? nullptr : &*found;
}

std::string WorkerJob::awaited() const {
  if (const Peer* const peer = behind()) {
    const std::string& name = options_.ps[std::size_t(peer - peers_.data())];
    if (peer->phase == Phase::kWelcomed) return "the chief to declare the variables to " + name;
    return name;
  }
  return waits_initialised_ && !initialised() ? "the chief to initialise the variables" : "";
}

// The ps tasks are reached one after the other, so that a message names the first that is missing.
TimePoint WorkerJob::tick(TimePoint now, Outbox& out) {
  const std::string what = awaited();
  if (what.empty()) return TimePoint::max();
  if (what != said_for_) {
    said_for_ = what;
    next_say_ = now + options_.say_after;
  }
  if (now >= deadline_) too_late();
  Peer* const peer = const_cast<Peer*>(behind());
  if (peer != nullptr && peer->phase == Phase::kApart && now >= peer->try_at) {
    peer->phase = Phase::kConnecting;
    peer->closed = peer->busy = false;
    out.connect(PeerId(peer - peers_.data()));
  }
  if (now >= next_say_) {
    next_say_ = now + kSayEvery;
    const bool apart = peer != nullptr && !peer->why.empty() && peer->phase < Phase::kGreeted;
    out.say(fmt::format("waiting for {}{}", what, apart ? ": " + peer->why : ""));
  }
  const bool rests = peer != nullptr && peer->phase == Phase::kApart;
  return std::min({deadline_, next_say_, rests ? peer->try_at : TimePoint::max()});
}

void WorkerJob::too_late() const {
  const auto fail = [&](const std::string& what, const std::string& why) {
    const std::chrono::duration<double> timeout = options_.join_timeout;
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} within {:.0f} s (--join-timeout){}", what, timeout.count(), why));
  };
  const Peer* const peer = behind();
  if (peer == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                "the chief has not initialised the variables within --join-timeout");
  }
  const std::string& name = options_.ps[std::size_t(peer - peers_.data())];
  if (peer->phase == Phase::kGreeted) fail(name + " said nothing", "");
  if (peer->phase == Phase::kWelcomed) fail(name + " was told no variables by the chief", "");
  // One that was there and went away says more than one that is not there any more.
  const std::string before =
      peer->why_before.empty() ? "" : fmt::format(" (before: {})", peer->why_before);
  fail(name + " could not be reached", ": " + peer->why + before);
  std::abort();  // fail() has thrown
}

Hello WorkerJob::hello(int ps, DType wire) const {
  const Peer& peer = peers_[std::size_t(ps)];
  return {.version = kProtocolVersion,
          .job = "worker",
          .index = options_.worker,
          .cluster_id = options_.cluster_id,
          .incarnation = options_.incarnation,
          .epoch = peer.comes_back ? peer.epoch : 0,
          .fingerprint = options_.fingerprint,
          .spin = options_.spin,
          .ps = ps,
          .workers = options_.workers,
          .wire = wire,
          .credentials = {}};
}

void WorkerJob::connected(int ps, DType wire, Outbox& out) {
  Peer& peer = peers_[std::size_t(ps)];
  if (peer.phase != Phase::kConnecting) return;  // it has ended already
  peer.phase = Phase::kGreeted;
  out.send(PeerId(ps), MessageType::kHello, hello(ps, wire));
}

void WorkerJob::connect_failed(int ps, const std::string& why, TimePoint now) {
  try_again(peers_[std::size_t(ps)], why, now);
}

void WorkerJob::set_why(Peer& peer, const std::string& why) {
  if (why != peer.why) peer.why_before = std::exchange(peer.why, why);
}

void WorkerJob::try_again(Peer& peer, const std::string& why, TimePoint now) {
  set_why(peer, why);
  peer.phase = Phase::kApart;
  peer.try_at = now + peer.back_off;
  peer.back_off = std::min(peer.back_off * 3 / 2, kLongestBackOff);
}

void WorkerJob::received(int ps, const ControlMessage& message, Outbox& out) {
  Peer& peer = peers_[std::size_t(ps)];
  switch (message.type) {
    case MessageType::kWelcome:
      peer.phase = Phase::kWelcomed;
      peer.epoch = message.as<Welcome>().epoch;
      peer.progress = message.as<Welcome>().progress;
      if (ps == 0 && peer.comes_back) steps_done_ = std::max(steps_done_, peer.progress.ended);
      return out.send(PeerId(ps), MessageType::kDeclare, options_.declare);
    case MessageType::kDeclared:
      if (!peer.comes_back) peer.was_initialised = message.as<Declared>().initialised;
      peer.phase = Phase::kAgreed;
      return;
    case MessageType::kWritten:
      ++peer.written;
      return;
    case MessageType::kInitialised:
      return on_initialised(ps, peer, message.as<Initialised>());
    case MessageType::kStepDone:
      global_step_ = message.as<StepDone>().global_step;
      staleness_.add(message.as<StepDone>().staleness);
      steps_done_ = std::max(steps_done_, std::int64_t(message.step) + 1);
      return;
    case MessageType::kStepLimit:
      step_limit_ = message.as<std::int64_t>();
      return;
    case MessageType::kJobState:
      state_ = message.as<JobState>();
      return;
    case MessageType::kTaskState:
      restored_ = decode_task_state(*message.as<StateBytes>());
      return;
    case MessageType::kAskState:
      state_asked_ = message.step;
      return;
    case MessageType::kStop:
      stop_asked_ = true;
      return;
    case MessageType::kRefuse:
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("{}: {}", options_.ps[std::size_t(ps)], message.as<std::string>()));
    case MessageType::kBusy:
      peer.busy = true;
      return set_why(peer, message.as<std::string>());
    default:
      throw Error(ErrorCode::kDataLoss, "[store] unexpected message " + name_of(message.type));
  }
}

// The ps that counts steps says where this worker begins, and only the first time.
void WorkerJob::on_initialised(int ps, Peer& peer, const Initialised& told) {
  if (ps == 0) global_step_ = std::max(global_step_, told.global_step);
  if (ps == 0 && !peer.initialised) {
    global_step_ = told.global_step;
    next_step_ = steps_done_ = told.own_step;
  }
  peer.initialised = true;
}

WorkerJob::Closed WorkerJob::closed(int ps, const Error& error, TimePoint now) {
  Peer& peer = peers_[std::size_t(ps)];
  const bool unanswered = peer.phase < Phase::kWelcomed;
  peer.closed = true;
  if (leaving_) return Closed::kExpected;
  // A ps that ends before it has answered may be about to serve the next job.
  if (!unanswered || error.code() != ErrorCode::kUnavailable) return Closed::kLost;
  try_again(peer, peer.busy ? peer.why : error.what(), now);
  return Closed::kTryAgain;
}

void WorkerJob::wait_initialised(TimePoint now) {
  if (std::exchange(waits_initialised_, true)) return;
  deadline_ = now + options_.join_timeout;
}

void WorkerJob::set_done(Outbox& out) {
  for (std::size_t ps = 0; ps < peers_.size(); ++ps) out.send(ps, MessageType::kDone);
}

void WorkerJob::leave(Outbox& out) {
  leaving_ = true;
  for (std::size_t ps = 0; ps < peers_.size(); ++ps) out.send(ps, MessageType::kGoodbye);
}

void WorkerJob::come_back(int ps, TimePoint now) {
  Peer& peer = peers_[std::size_t(ps)];
  peer.comes_back = true;
  peer.phase = Phase::kApart;
  peer.try_at = now;
  peer.back_off = kFirstBackOff;
  deadline_ = now + options_.join_timeout;
}

}  // namespace paceline
