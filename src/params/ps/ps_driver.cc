#include "params/ps/ps_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/cores.h"
#include "params/job_control.h"
#include "params/protocol/placement.h"
#include "params/ps/ps_peer.h"
#include "params/shard/rule_label.h"

namespace paceline {
namespace {

int link_threads(const PsOptions& options) {
  const int cores = usable_cores();
  const int most = options.any_job ? cores : std::max(1, int(options.spec.workers.size()));
  return std::clamp(options.threads > 0 ? options.threads : cores, 1, most);
}

int apply_threads(const PsOptions& options) {
  return options.threads > 0 ? options.threads : usable_cores();
}

}  // namespace

PsDriver::PsDriver(const PsOptions& options, std::function<void()> wake)
    : options_(options),
      threads_(link_threads(options)),
      wake_(std::move(wake)),
      apply_pool_(apply_threads(options)),
      machine_(
          machine_options(), [this](const Declare& declare) { return take_variables(declare); },
          now()),
      saving_(options.sees_files) {}

PsDriver::~PsDriver() = default;

PsSummary PsDriver::summary() const {
  const PsAccount::Shares shares = account_.shares(threads_);
  const Bytes sent = bytes();
  return {.job = id(),
          .applied = applied(),
          .late = late(),
          .global_step = global_step(),
          .seconds = shares.seconds,
          .apply_share = shares.apply,
          .queue_share = shares.queue,
          .idle_share = shares.idle,
          .error = {},
          .use = use(),
          .bytes_sent = sent.sent,
          .bytes_received = sent.received,
          .kept = kept()};
}

KeptOnPs PsDriver::kept() const {
  const std::lock_guard lock(mutex_);
  if (!shard_) return {};
  return kept_on_ps(shard_->variables(), shard_->all_pieces(), shard_->ps());
}

void PsDriver::tell_progress(PsPeer& peer) {
  const std::string text = options_.progress_text ? options_.progress_text(summary()) : "";
  answer(peer.id(), MessageType::kProgress, text);
}

PsTaskOptions PsDriver::machine_options() const {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {.ps = options_.task.index,
          .workers = int(options_.spec.workers.size()),
          .cluster_id = options_.cluster_id,
          .any_job = options_.any_job,
          .incarnation = std::uint64_t(since_epoch.count()),
          .first_epoch = options_.first_epoch,
          .join_timeout = options_.join_timeout,
          .reconnect_timeout = options_.reconnect_timeout,
          .last_step = options_.last_step,
          .warm_steps = kUntimedSteps};
}

void PsDriver::say(const std::string& line) const {
  if (options_.say) options_.say(line);
}

void PsDriver::warn(const std::string& line) const {
  if (options_.warn) options_.warn(line);
}

// The machine calls it, under the lock.
std::vector<std::int32_t> PsDriver::take_variables(const Declare& declare) {
  const bool in_rounds = declare.aggregation.kind == AggregationKind::kRounds;
  shard_ = std::make_unique<Shard>(declare.variables, declare.pieces, machine_.ps(), apply_pool_,
                                   options_.after_reads, in_rounds ? machine_.workers() + 1 : 0);
  for (std::size_t i = 0; options_.timeline != nullptr && i < shard_->size(); ++i) {
    labels_.push_back(
        options_.timeline->label(rule_label(shard_->at(i).variable(), shard_->at(i).where().id)));
  }
  if (options_.placed) options_.placed(placement_text(declare.variables, declare.pieces));
  return shard_->changed_after_reads();
}

void PsDriver::carry_out(std::vector<HostAction>& later) {
  for (std::size_t i = 0; i < out_.actions().size(); ++i) {
    Outbox::Action action = std::move(out_.actions()[i]);
    if (const auto* send = std::get_if<Outbox::Send>(&action)) {
      carry_out(*send);
    } else if (const auto* line = std::get_if<Outbox::Line>(&action)) {
      carry_out(*line);
    } else if (const auto* close = std::get_if<Outbox::Close>(&action)) {
      closing_.emplace_back(close->peer, close->patience);
      wake_();
    } else if (const auto* share = std::get_if<Outbox::ShareValues>(&action)) {
      if (PsPeer* peer = find(share->to)) {
        peer->replies().share(kMemoryOfValues, shard_->values());
      }
    } else if (const auto* attach = std::get_if<Outbox::Attach>(&action)) {
      find(attach->to)->take_connection_of(*find(attach->from));
    } else if (const auto* forget = std::get_if<Outbox::Forget>(&action)) {
      forgotten_.push_back(forget->peer);
      wake_();
    } else if (const auto* go_on = std::get_if<Outbox::GoOn>(&action)) {
      later.emplace_back(*go_on);
    } else if (auto* found = std::get_if<Outbox::Find>(&action)) {
      later.emplace_back(std::move(*found));
    } else if (auto* mark = std::get_if<Outbox::Mark>(&action)) {
      carry_out_in_order(std::move(*mark), later);
    } else if (auto* save = std::get_if<Outbox::Save>(&action)) {
      carry_out_in_order(std::move(*save), later);
    } else if (auto* decide = std::get_if<Outbox::Decide>(&action)) {
      carry_out(std::move(*decide));
      later.emplace_back(RunRounds{});
    } else if (const auto* clip = std::get_if<Outbox::Clip>(&action)) {
      rounds_.push(clip->scale);
      later.emplace_back(RunRounds{});
    } else if (std::holds_alternative<Outbox::Connect>(action)) {
      connects_ = true;
      wake_();
    }
  }
  out_.clear();
}

// A checkpoint is of the moment between two rounds.
template <typename Action>
void PsDriver::carry_out_in_order(Action action, std::vector<HostAction>& later) {
  if (!machine_.in_rounds()) return void(later.emplace_back(std::move(action)));
  rounds_.push([this, action = HostAction(std::move(action))] { carry_out_unlocked(action); });
  later.emplace_back(RunRounds{});
}

// A message that cannot be sent, since too much waits for the peer or memory is out, ends that
// peer's connection. It is no error of the peer that caused the message.
void PsDriver::carry_out(const Outbox::Send& send) {
  if (send.to == Outbox::kCoordinator) return coordinator().send(send.message);
  PsPeer* const peer = find(send.to);
  if (peer == nullptr) return;
  const ControlMessage& message = send.message;
  try {
    if (const auto* number = std::get_if<std::int64_t>(&message.body)) {
      peer->replies().send(message.type, encode_number(*number), message.step);
    } else if (const auto* done = std::get_if<StepDone>(&message.body)) {
      peer->replies().send(message.type, encode(*done), message.step);
    } else if (const auto* state = std::get_if<StateBytes>(&message.body)) {
      peer->replies().send_task_state(*state, message.step);
    } else {
      peer->replies().send(message.type, encode(message), message.step);
    }
  } catch (const std::exception& error) {
    machine_.give_up(send.to, error.what(), out_);
  }
}

void PsDriver::carry_out(const Outbox::Line& line) const {
  const PsPeer* const about = find(line.about);
  const std::string text = line.before + (about == nullptr ? "" : about->text()) + line.after;
  line.warning ? warn(text) : say(text);
}

void PsDriver::carry_out_unlocked(const HostAction& action) {
  if (const auto* find = std::get_if<Outbox::Find>(&action)) {
    answer(find->asker, MessageType::kFoundFile, saving_.find(find->file, *shard_));
  } else if (const auto* mark = std::get_if<Outbox::Mark>(&action)) {
    saving_.mark(*shard_, mark->what);
  } else if (const auto* save = std::get_if<Outbox::Save>(&action)) {
    saving_.write(*shard_, save->path,
                  [this, asker = save->asker, number = save->save](const SavedShard& saved) {
                    answer(asker, MessageType::kSaved, saved, number);
                  });
  } else if (const auto* on = std::get_if<Outbox::GoOn>(&action)) {
    go_on(*on);
  } else {
    rounds_.run();
  }
}

// A member stays in peers_.
void PsDriver::go_on(const Outbox::GoOn& action) {
  if (action.peer == Outbox::kCoordinator) return coordinator_->go_on(action.handled);
  std::unique_lock lock(mutex_);
  PsPeer* const peer = find(action.peer);
  lock.unlock();
  try {
    if (peer != nullptr) peer->stream().go_on(action.handled);
  } catch (const Error& error) {
    drive([&](Outbox& out) { machine_.refuse(action.peer, error.what(), out); });
  }
}

void PsDriver::answer(PeerId to, MessageType type, ControlMessage::Body body, std::uint64_t step) {
  drive([&](Outbox& out) { out.send(to, type, std::move(body), step); });
}

PsPeer* PsDriver::find(PeerId id) const {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : found->second.get();
}

Receiver* PsDriver::accept(std::shared_ptr<Connection> connection) {
  return drive([&](Outbox& out) -> Receiver* {
    const PeerId id = next_peer_++;
    machine_.accepted(id, now(), out);
    wake_();
    auto peer = std::make_unique<PsPeer>(*this, id, std::move(connection));
    return &peers_.emplace(id, std::move(peer)).first->second->inlet();
  });
}

void PsDriver::control(PsPeer& peer, const ControlMessage& message) {
  drive([&](Outbox& out) {
    machine_.received(peer.id(), message, now(), out);
    const int worker = machine_.worker(peer.id());
    if (message.type == MessageType::kHello && worker >= 0) peer.identify(worker);
    const int shard = machine_.shard(peer.id());
    if (message.type == MessageType::kHello && shard >= 0) peer.identify_ps(shard);
  });
  wake_();
}

Shard& PsDriver::shard_for(PsPeer& peer, bool initialised) {
  const std::lock_guard lock(mutex_);
  machine_.check_agreed(peer.id(), initialised);
  return *shard_;
}

void PsDriver::refuse(PsPeer& peer, const std::string& why) {
  drive([&](Outbox& out) { machine_.refuse(peer.id(), why, out); });
}

void PsDriver::refuse_all(const std::string& why) {
  drive([&](Outbox& out) { machine_.refuse_workers(why, out); });
}

Fate PsDriver::begin_step(PsPeer& peer, std::int64_t step, bool reads_now, const StepBegin& begin) {
  return drive([&](Outbox&) {
    if (!bytes_before_) {
      bytes_before_ = bytes_locked();
      use_.start();
    }
    return machine_.begin_step(peer.id(), step, reads_now, begin);
  });
}

void PsDriver::end_step(PsPeer& peer, std::int64_t step, Fate fate, bool skipped) {
  const bool counts = fate == Fate::kApply;
  if (counts) ++applied_;
  const std::int64_t global_step = drive(
      [&](Outbox& out) { return machine_.end_step(peer.id(), step, fate, now(), out, skipped); });
  const std::int64_t every = options_.progress_every.steps;
  if (counts && every > 0 && global_step % every == 0) wake_();
}

std::int64_t PsDriver::global_step() const {
  const std::lock_guard lock(mutex_);
  return machine_.global_step();
}

bool PsDriver::closed(PsPeer& peer, const Error& error) {
  const PsTask::Ended ended = {
      .why = error.what(), .handled = peer.stream().handled(), .broken = peer.stream().broken()};
  const bool may_come_back =
      drive([&](Outbox& out) { return machine_.closed(peer.id(), ended, now(), out); });
  wake_();
  return may_come_back;
}

void PsDriver::let_go(PsPeer& peer) {
  const std::lock_guard lock(mutex_);
  peer.gone = true;
  if (!peer.is_member()) wake_();
}

PsDriver::Bytes PsDriver::bytes_locked() const {
  Bytes bytes = bytes_gone_;
  for (const auto& [id, peer] : peers_) {
    const Traffic& traffic = peer->stream().traffic();
    bytes.sent += traffic.bytes_sent;
    bytes.received += traffic.bytes_received;
  }
  return bytes;
}

PsDriver::Bytes PsDriver::bytes() const {
  const std::lock_guard lock(mutex_);
  const Bytes now = bytes_locked(), before = bytes_before_.value_or(now);
  return {now.sent - before.sent, now.received - before.received};
}

TimePoint PsDriver::turn(TimePoint time) {
  std::vector<std::pair<PsPeer*, Duration>> closing;
  std::vector<PsPeer*> forgotten;
  const TimePoint next = drive([&](Outbox& out) { return machine_.tick(time, out); });
  {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    for (const auto& [id, patience] : std::exchange(closing_, {})) {
      if (PsPeer* peer = find(id)) closing.emplace_back(peer, patience);
    }
    for (const PeerId id : std::exchange(forgotten_, {})) forgotten.push_back(find(id));
    forget_unidentified(closing);
  }
  for (PsPeer* const peer : forgotten) peer->finish();
  // Outside the lock: closing ends in on_closed, which takes it. Only this thread forgets peers.
  for (const auto& [peer, patience] : closing) peer->replies().close(Deadline::after(patience));
  return next;
}

// A member stays: whoever watches a value, or saves, may still name it.
void PsDriver::forget_unidentified(std::span<const std::pair<PsPeer*, Duration>> closing) {
  std::erase_if(peers_, [&](const auto& entry) {
    const PsPeer& peer = *entry.second;
    const auto named = std::ranges::find(closing, &peer, &std::pair<PsPeer*, Duration>::first);
    if (!peer.gone || peer.is_member() || named != closing.end()) return false;
    bytes_gone_.sent += peer.stream().traffic().bytes_sent;
    bytes_gone_.received += peer.stream().traffic().bytes_received;
    return true;
  });
}

Membership::End PsDriver::end(TimePoint time) const {
  const std::lock_guard lock(mutex_);
  return machine_.end(time);
}

bool PsDriver::begins_again() const {
  const std::lock_guard lock(mutex_);
  return machine_.begins_again();
}

std::uint64_t PsDriver::epoch() const {
  const std::lock_guard lock(mutex_);
  return machine_.epoch();
}

bool PsDriver::given_up() const {
  const std::lock_guard lock(mutex_);
  return machine_.given_up();
}

std::string PsDriver::members() const {
  const std::lock_guard lock(mutex_);
  return machine_.members();
}

std::string PsDriver::id() const {
  const std::lock_guard lock(mutex_);
  return machine_.id();
}

bool PsDriver::ask_to_leave() {
  return drive([&](Outbox& out) { return machine_.ask_to_leave(out); });
}

bool PsDriver::all_gone() const {
  const std::lock_guard lock(mutex_);
  return machine_.all_gone();
}

// PsDriver: synchronous rounds, and the connection to ps 0.

namespace {

constexpr Duration kOneTry = std::chrono::seconds(1);

}  // namespace

void PsDriver::carry_out(Outbox::Decide decide) {
  const RoundDecision& decision = decide.decision;
  const auto is_late = [&](const RoundContribution& it) { return it.round < decision.round; };
  applied_ += std::int64_t(decision.contributors.size());
  late_ += std::ranges::count_if(decision.contributors, is_late) +
           std::ranges::count_if(decision.dropped, is_late);
  const std::int64_t every = options_.progress_every.steps;
  if (every > 0 && decision.closes && machine_.global_step() % every == 0) wake_();
  rounds_.push(*shard_, std::move(decide));
}

CoordinatorConnection& PsDriver::coordinator() {
  if (coordinator_ == nullptr) coordinator_ = std::make_unique<CoordinatorConnection>(*this);
  return *coordinator_;
}

void PsDriver::tell(const Outbox::Decide& decided) {
  drive([&](Outbox& out) {
    for (const auto& [to, step, done] : decided.told) {
      out.send(to, MessageType::kStepDone, done, step);
    }
    for (const auto& [to, round] : decided.open) {
      out.send(to, MessageType::kRoundOpen, {}, std::uint64_t(round));
    }
  });
}

void PsDriver::squares(const RoundSquares& squares) {
  drive([&](Outbox& out) { machine_.squares(squares, out); });
}

void PsDriver::from_coordinator(const ControlMessage& message) {
  drive([&](Outbox& out) { machine_.from_coordinator(message, now(), out); });
}

void PsDriver::coordinator_closed(std::uint64_t handled) {
  drive([&](Outbox&) { machine_.coordinator_closed(handled, now()); });
  wake_();
}

void PsDriver::fail(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = error;
  }
  wake_();
}

void PsDriver::connect_coordinator(Link& link) {
  CoordinatorConnection* to = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(connects_, false)) return;
    to = &coordinator();
  }
  try {
    to->connect(link, machine_.coordinator_address(),
                Deadline::after(kOneTry).or_when_readable(options_.stop_fd));
    drive([&](Outbox& out) { machine_.coordinator_connected(out); });
  } catch (const Error& error) {
    drive([&](Outbox&) { machine_.coordinator_failed(error.what(), now()); });
  }
}

}  // namespace paceline
