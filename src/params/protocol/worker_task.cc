// Each ps process is an incarnation. If a worker finds another incarnation than the one it knows,
// the values that it trained with are lost. Its session then ends with kAborted, and run_program
// calls the program again, as if all tasks had been started with --resume. So neither a session nor
// a program ever has to undo a step.
//
// A ps may have no values because it has lost them, or because it is about to get them. Only the
// chief knows which, so the chief asks the ps tasks to begin again.
#include "params/protocol/worker_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/plain_text.h"
#include "base/quantile.h"
#include "params/protocol/seconds_text.h"

namespace paceline {

// The highest bits of a number of updates determine its bucket.
std::size_t StalenessHistogram::bucket_of(std::int64_t updates) {
  const auto number = std::uint64_t(std::min(updates, (std::int64_t{1} << kLargestBits) - 1));
  const int shift = std::max(0, int(std::bit_width(number)) - kExactBits);
  return std::size_t(shift) * kHalf + std::size_t(number >> shift);
}

std::int64_t StalenessHistogram::middle_of(std::size_t bucket) {
  if (bucket < 2 * kHalf) return std::int64_t(bucket);
  const std::size_t shift = bucket / kHalf - 1;
  const auto lowest = std::int64_t((bucket - shift * kHalf) << shift);
  return lowest + ((std::int64_t{1} << shift) - 1) / 2;
}

void StalenessHistogram::add(std::int64_t updates) {
  if (updates < 0) return;
  ++counts_[bucket_of(updates)];
  ++contributions_;
  updates_ += updates;
}

Staleness StalenessHistogram::summary() const {
  if (contributions_ == 0) return {};
  return {.contributions = contributions_,
          .updates = updates_,
          .p95 = middle_of(bucket_of_quantile(counts_, contributions_, 0.95))};
}

namespace {

constexpr Duration kSayEvery = std::chrono::seconds(10);
constexpr Duration kFirstBackOff = std::chrono::milliseconds(20);
// The longest pause between two tries to connect, so that a worker reaches its ps within a second
// of the ps's start.
constexpr Duration kLongestBackOff = std::chrono::milliseconds(500);

}  // namespace

WorkerTask::WorkerTask(WorkerTaskOptions options, TimePoint now)
    : options_(std::move(options)),
      deadline_(now + options_.join_timeout),
      next_say_(now + options_.say_after),
      peers_(options_.ps.size()),
      step_limit_(options_.declare.aggregation.kind == AggregationKind::kAsync
                      ? Aggregation::kNoLimit
                      : -1) {
  for (Peer& peer : peers_) peer.back_off = kFirstBackOff;
}

bool WorkerTask::joined() const {
  return lost_values_ < 0 &&
         std::ranges::all_of(peers_, [](const Peer& peer) { return peer.agreed; });
}

bool WorkerTask::initialised() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.initialised; });
}

bool WorkerTask::all_closed() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.closed; });
}

int WorkerTask::cut_off() const {
  return int(
      std::ranges::count_if(peers_, [](const Peer& peer) { return peer.cut_at.has_value(); }));
}

const WorkerTask::Peer* WorkerTask::behind() const {
  auto found = std::ranges::find_if(peers_, [](const Peer& peer) { return !peer.welcomed(); });
  if (found == peers_.end()) {
    found = std::ranges::find_if(peers_, [](const Peer& peer) { return !peer.agreed; });
  }
  return found == peers_.end() ? nullptr : &*found;
}

std::string WorkerTask::awaited() const {
  if (const Peer* const peer = behind()) {
    const std::string& name = options_.ps[std::size_t(peer - peers_.data())];
    if (peer->welcomed()) return "the chief to declare the variables to " + name;
    return name;
  }
  if (lost_values_ >= 0) return "the ps tasks to forget their values";
  return waits_initialised_ && !initialised() ? "the chief to initialise the variables" : "";
}

// The worker connects to the ps tasks one after the other, so a message names the first missing ps.
TimePoint WorkerTask::tick(TimePoint now, Outbox& out) {
  check_begun_again();
  const TimePoint back = come_back(now, out);
  const std::string what = awaited();
  if (what.empty()) return back;
  if (what != said_for_) {
    said_for_ = what;
    next_say_ = now + options_.say_after;
  }
  if (now >= deadline_) too_late();
  Peer* const peer = const_cast<Peer*>(behind());
  const bool apart = peer != nullptr && peer->phase == Phase::kApart && !peer->cut_at;
  if (apart && now >= peer->try_at) {
    peer->phase = Phase::kConnecting;
    peer->closed = peer->busy = false;
    out.connect(PeerId(peer - peers_.data()));
  }
  if (now >= next_say_) {
    next_say_ = now + kSayEvery;
    const bool failed = peer != nullptr && !peer->why.empty() && peer->phase < Phase::kGreeted;
    out.say(fmt::format("waiting for {}{}", what, failed ? ": " + peer->why : ""));
  }
  const bool rests = apart && peer->phase == Phase::kApart;
  return std::min({back, deadline_, next_say_, rests ? peer->try_at : TimePoint::max()});
}

TimePoint WorkerTask::come_back(TimePoint now, Outbox& out) {
  TimePoint next = TimePoint::max();
  for (std::size_t ps = 0; ps < peers_.size(); ++ps) {
    Peer& peer = peers_[ps];
    if (!peer.cut_at || peer.closed) continue;
    const TimePoint until = *peer.cut_at + options_.reconnect_timeout;
    if (now >= until) stays_away(peer);
    next = std::min(next, until);
    if (peer.phase != Phase::kApart) continue;
    if (now < peer.try_at) {
      next = std::min(next, peer.try_at);
      continue;
    }
    peer.phase = Phase::kConnecting;
    peer.busy = false;
    out.connect(PeerId(ps));
  }
  return next;
}

void WorkerTask::stays_away(const Peer& peer) const {
  throw Error(ErrorCode::kAborted,
              fmt::format("lost {}; it did not come back within {} (--reconnect-timeout){}",
                          peer.cut_why, seconds_text(options_.reconnect_timeout),
                          peer.why.empty() ? "" : ": " + peer.why));
}

void WorkerTask::too_late() const {
  const auto fail = [&](const std::string& what, const std::string& why) {
    throw Error(ErrorCode::kUnavailable, fmt::format("{} within {} (--join-timeout){}", what,
                                                     seconds_text(options_.join_timeout), why));
  };
  const Peer* const peer = behind();
  if (lost_values_ >= 0) fail("the ps tasks have not forgotten their values", "");
  if (peer == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                "the chief has not initialised the variables within --join-timeout");
  }
  const std::string& name = options_.ps[std::size_t(peer - peers_.data())];
  if (peer->phase == Phase::kGreeted) {
    fail(name + " accepts connections but said nothing", ": it may not speak Paceline");
  }
  if (peer->welcomed()) fail(name + " was told no variables by the chief", "");
  // The earlier reason often says more: for example, it says that the ps went away, where the later
  // reason only says that nobody listens.
  const std::string before =
      peer->why_before.empty() ? "" : fmt::format(" (before: {})", peer->why_before);
  fail(name + " could not be reached", ": " + peer->why + before);
  std::abort();  // fail() has thrown
}

Hello WorkerTask::hello(int ps, const ContributionForm& form) const {
  const Peer& peer = peers_[std::size_t(ps)];
  return {.version = kProtocolVersion,
          .role = "worker",
          .index = options_.worker,
          .cluster_id = options_.cluster_id,
          .incarnation = options_.incarnation,
          .epoch = peer.epoch,
          .handled = peer.handled,
          .fingerprint = options_.fingerprint,
          .ps = ps,
          .ps_incarnation = peer.incarnation,
          .workers = options_.workers,
          .wire = form.type,
          .kept = std::uint8_t(form.kept),
          .flags = options_.flags,
          .process = options_.process,
          .credentials = {}};
}

void WorkerTask::connected(int ps, const ContributionForm& form, Outbox& out) {
  Peer& peer = peers_[std::size_t(ps)];
  if (peer.phase != Phase::kConnecting) return;  // the connection has ended already
  peer.phase = Phase::kGreeted;
  out.send(PeerId(ps), MessageType::kHello, hello(ps, form));
}

// If a ps cannot be reached after this worker has said goodbye, the ps has ended.
void WorkerTask::connect_failed(int ps, const std::string& why, TimePoint now) {
  Peer& peer = peers_[std::size_t(ps)];
  peer.closed = leaving_;
  try_again(peer, why, now);
}

void WorkerTask::set_why(Peer& peer, const std::string& why) {
  if (why != peer.why) peer.why_before = std::exchange(peer.why, why);
}

void WorkerTask::try_again(Peer& peer, const std::string& why, TimePoint now) {
  set_why(peer, why);
  peer.phase = Phase::kApart;
  peer.try_at = now + peer.back_off;
  peer.back_off = std::min(peer.back_off * 3 / 2, kLongestBackOff);
}

void WorkerTask::received(int ps, const ControlMessage& message, TimePoint now, Outbox& out) {
  Peer& peer = peers_[std::size_t(ps)];
  switch (message.type) {
    case MessageType::kWelcome:
      return on_welcome(ps, peer, message.as<Welcome>(), now, out);
    case MessageType::kDeclared:
      peer.was_initialised = message.as<Declared>().initialised;
      peer.agreed = true;
      return find_lost_values(now, out);
    case MessageType::kWritten:
      ++peer.written;
      return;
    case MessageType::kInitialised:
      return on_initialised(ps, peer, message.as<Initialised>());
    case MessageType::kStepDone:
      return on_step_done(ps, peer, std::int64_t(message.step), message.as<StepDone>());
    case MessageType::kStepLimit:
      step_limit_ = message.as<std::int64_t>();
      return;
    case MessageType::kJobState:
      on_job_state(message.as<JobState>());
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
    case MessageType::kGiven:
      steps_given_ = std::max(steps_given_, std::int64_t(message.step) + 1);
      return;
    case MessageType::kScale:
      scale_ = message.as<RoundScale>();
      return;
    case MessageType::kRoundOpen:
      peer.open_round = std::int64_t(message.step);
      if (ps == 0) global_step_ = std::max(global_step_, *peer.open_round);
      return;
    case MessageType::kRecords:
      return on_records(message.as<GivenRecords>());
    case MessageType::kRefuse:
      return on_refuse(ps, peer, message.as<std::string>());
    case MessageType::kRestarted:
      if (leaving_) return void(peer.closed = true);
      return on_restarted(ps, peer);
    case MessageType::kBusy:
      peer.busy = true;
      return set_why(peer, plain_text(message.as<std::string>()));
    default:
      throw Error(ErrorCode::kDataLoss, "[store] unexpected message " + name_of(message.type));
  }
}

// In rounds every ps says that the step is done, and says so before it sends values of a later
// round. Once all have said it, the worker can read values of one round from all of them.
void WorkerTask::on_step_done(int ps, Peer& peer, std::int64_t step, const StepDone& done) {
  if (ps == 0) {
    global_step_ = done.global_step;
    staleness_.add(done.staleness);
    if (done.staleness == StepDone::kTooLate) ++too_late_;
    last_contributors_ = done.contributors;
  }
  peer.steps_done = std::max(peer.steps_done, step + 1);
  if (!in_rounds()) {
    steps_done_ = peers_.front().steps_done;
    return;
  }
  steps_done_ = std::ranges::min_element(peers_, {}, &Peer::steps_done)->steps_done;
  step_limit_ = steps_done_;
}

Staleness WorkerTask::staleness() const {
  Staleness staleness = staleness_.summary();
  staleness.dropped = too_late_;
  return staleness;
}

// A worker that has ended the training stays in that state, even if a ps says otherwise: the ps may
// have sent its message before it heard of the end.
void WorkerTask::on_job_state(const JobState& state) {
  const bool ended = state_.ended || state.ended;
  state_ = state;
  state_.ended = ended;
}

// The ps that counts steps says where this worker begins. Only its first message counts.
void WorkerTask::on_initialised(int ps, Peer& peer, const Initialised& told) {
  if (ps == 0) global_step_ = std::max(global_step_, told.global_step);
  if (ps == 0 && !peer.initialised) {
    global_step_ = told.global_step;
    next_step_ = steps_done_ = told.own_step;
    for (Peer& other : peers_) other.steps_done = told.own_step;
    if (in_rounds()) step_limit_ = told.own_step;
  }
  peer.initialised = true;
}

void WorkerTask::on_welcome(int ps, Peer& peer, const Welcome& welcome, TimePoint now,
                            Outbox& out) {
  const bool first = !peer.welcomed();
  peer.phase = Phase::kWelcomed;
  peer.epoch = std::max<std::uint64_t>(welcome.epoch, 1);
  peer.incarnation = welcome.incarnation;
  peer.back_off = kFirstBackOff;
  if (first) return out.send(PeerId(ps), MessageType::kDeclare, options_.declare);
  if (!peer.cut_at) return;
  const std::chrono::duration<double> away = now - *std::exchange(peer.cut_at, std::nullopt);
  out.say(fmt::format("{} is back after {:.1f} s", options_.ps[std::size_t(ps)], away.count()));
}

void WorkerTask::on_restarted(int ps, Peer& peer) const {
  peer.refused = true;
  throw Error(ErrorCode::kAborted,
              fmt::format("{} was restarted: its values are lost", options_.ps[std::size_t(ps)]));
}

// All values must be of one moment: if one ps has none, the values of the others are of no use.
// Only the chief looks for this, since only the chief knows whether somebody is initialising the
// values.
void WorkerTask::find_lost_values(TimePoint now, Outbox& out) {
  const bool is_chief = options_.worker == 0;
  if (!is_chief || !joined()) return;
  const auto lost = std::ranges::find(peers_, false, &Peer::was_initialised);
  if (lost == peers_.end() || std::ranges::none_of(peers_, &Peer::was_initialised)) return;
  lost_values_ = int(lost - peers_.begin());
  deadline_ = now + options_.join_timeout;
  lost_why_ = fmt::format("{} has lost its values", options_.ps[std::size_t(lost_values_)]);
  for (std::size_t ps = 0; ps < peers_.size(); ++ps) forget_values(int(ps), {}, out);
}

void WorkerTask::forget_values(int ps, const BeginAgain& again, Outbox& out) {
  Peer& peer = peers_[std::size_t(ps)];
  if (peer.begins_again || !peer.was_initialised) return;
  peer.begins_again = true;
  out.send(PeerId(ps), MessageType::kBeginAgain, again);
}

void WorkerTask::check_begun_again() const {
  const auto waits = [](const Peer& peer) { return peer.begins_again && !peer.closed; };
  if (lost_values_ < 0 || peers_.front().refused || std::ranges::any_of(peers_, waits)) return;
  throw Error(ErrorCode::kAborted, lost_why_);
}

// A worker that is leaving need not connect again, and so need not hear the refusal.
void WorkerTask::on_refuse(int ps, Peer& peer, const std::string& why) const {
  if (leaving_) return void(peer.closed = true);
  peer.refused = true;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("{}: {}", options_.ps[std::size_t(ps)], plain_text(why)));
}

WorkerTask::Closed WorkerTask::closed(int ps, const Error& error, const Ended& ended, TimePoint now,
                                      Outbox& out) {
  Peer& peer = peers_[std::size_t(ps)];
  const bool unanswered = peer.phase < Phase::kWelcomed;
  if (peer.begins_again) {
    peer.closed = true;
    if (std::exchange(others_follow_, false) && !peer.refused) {
      for (std::size_t other = 1; other < peers_.size(); ++other)
        forget_values(int(other), {}, out);
    }
    return Closed::kExpected;
  }
  if (leaving_ && (ended.all_confirmed || ended.broken || !peer.welcomed())) {
    peer.closed = true;
    return Closed::kExpected;
  }
  if (!peer.welcomed()) {
    // A ps that ends its connection before it has answered may be about to serve the next job.
    peer.closed = true;
    // A single garbled answer may come from a bit that was flipped in transit. A peer that does not
    // speak Paceline will garble the next answer, too.
    if (ended.broken) return Closed::kLost;
    const bool garbled = error.code() != ErrorCode::kUnavailable;
    if (garbled && std::exchange(peer.garbled, true)) return Closed::kStranger;
  } else if (peer.refused || ended.broken || options_.reconnect_timeout <= Duration(0)) {
    peer.closed = true;
    return Closed::kLost;
  }
  if (!unanswered) {
    note_cut(peer, error, ended, now, out);
    return Closed::kCutOff;
  }
  try_again(peer, peer.busy ? peer.why : error.what(), now);
  return Closed::kTryAgain;
}

void WorkerTask::note_cut(Peer& peer, const Error& error, const Ended& ended, TimePoint now,
                          Outbox& out) {
  peer.phase = Phase::kApart;
  peer.handled = ended.handled;
  peer.cut_at = peer.try_at = now;
  peer.cut_why = fmt::format("{}: {}", ended.where, error.what());
  peer.why.clear();
  peer.why_before.clear();
  if (leaving_) return;
  out.say(fmt::format("lost {}; it may come back within {} (--reconnect-timeout)", peer.cut_why,
                      seconds_text(options_.reconnect_timeout)));
}

void WorkerTask::wait_initialised(TimePoint now) {
  if (std::exchange(waits_initialised_, true)) return;
  deadline_ = now + options_.join_timeout;
}

void WorkerTask::set_done(Outbox& out) {
  for (std::size_t ps = 0; ps < peers_.size(); ++ps) out.send(ps, MessageType::kDone);
}

void WorkerTask::end_training(Outbox& out) {
  if (std::exchange(state_.ended, true)) return;
  for (std::size_t ps = 0; ps < peers_.size(); ++ps) out.send(ps, MessageType::kEndTraining);
}

void WorkerTask::leave(Outbox& out) {
  leaving_ = true;
  for (std::size_t ps = 0; ps < peers_.size(); ++ps) out.send(ps, MessageType::kGoodbye);
}

// WorkerTask: rounds that the workers commit, and records that ps 0 shares out.

void WorkerTask::commit(const CommittedRound& committed, Outbox& out) {
  out.send(0, MessageType::kCommitted, committed);
}

void WorkerTask::withdraw(std::int64_t step, Outbox& out) {
  out.send(0, MessageType::kWithdraw, {}, std::uint64_t(step));
}

void WorkerTask::await_round(std::int64_t round, Outbox& out) {
  for (std::size_t ps = 0; ps < peers_.size(); ++ps) {
    peers_[ps].open_round.reset();
    out.send(ps, MessageType::kRoundOpen, {}, std::uint64_t(round));
  }
}

bool WorkerTask::round_is_open() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.open_round.has_value(); });
}

void WorkerTask::begin_again(std::string why, const BeginAgain& again, TimePoint now, Outbox& out) {
  lost_values_ = 0;
  deadline_ = now + options_.join_timeout;
  lost_why_ = std::move(why);
  others_follow_ = true;
  forget_values(0, again, out);
}

void WorkerTask::ask_records(const RecordWish& wish, Outbox& out) {
  out.send(0, MessageType::kAskRecords, wish);
}

void WorkerTask::reads_records(std::int64_t records, Outbox& out) {
  out.send(0, MessageType::kReadsRecords, records, std::uint64_t(next_step_ - 1));
}

void WorkerTask::on_records(const GivenRecords& given) {
  given_.ranges.insert(given_.ranges.end(), given.ranges.begin(), given.ranges.end());
  given_.over = given_.over || given.over;
}

}  // namespace paceline
