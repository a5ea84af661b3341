#include "params/worker/worker_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/this_process.h"
#include "params/wire/variables.h"
#include "params/worker/ps_connection.h"

namespace paceline {

void PsRecordBlocks::leave() {
  {
    const std::lock_guard lock(mutex_);
    job_ = {};
    over_ = true;
  }
  tell_changed();
}

void PsRecordBlocks::add(const GivenRecords& given) {
  {
    const std::lock_guard lock(mutex_);
    given_.insert(given_.end(), given.ranges.begin(), given.ranges.end());
    over_ = over_ || given.over;
    starves_ = false;
  }
  tell_changed();
}

// Gives out again the records that an earlier pipeline has taken but no step has read.
std::int64_t PsRecordBlocks::began(const Wish& wish) {
  const std::lock_guard lock(mutex_);
  forget_read(reads());
  given_.insert(given_.begin(), taken_.begin(), taken_.end());
  taken_.clear();
  wish_ = wish;
  ask_ahead();
  return reads();
}

void PsRecordBlocks::ask_ahead() {
  for (; job_.ask && !over_ && ahead_ < wish_.blocks; ++ahead_) {
    job_.ask({.records = wish_.records, .limit = wish_.limit});
  }
}

void PsRecordBlocks::forget_read(std::int64_t records) {
  while (read_ < records && !taken_.empty()) {
    RecordRange& first = taken_.front();
    const std::int64_t count = std::min(records - read_, first.size());
    first.first += count;
    read_ += count;
    if (first.size() == 0) taken_.pop_front();
  }
}

RecordRange PsRecordBlocks::take(std::int64_t most) {
  const std::lock_guard lock(mutex_);
  forget_read(reads());
  if (given_.empty()) return {};
  RecordRange& first = given_.front();
  taken_.push_back({first.first, first.first + std::min(most, first.size())});
  first.first = taken_.back().end;
  if (first.size() == 0) given_.pop_front();
  unasked_ += taken_.back().size();
  ahead_ -= unasked_ / wish_.records;
  unasked_ %= wish_.records;
  ask_ahead();
  return taken_.back();
}

bool PsRecordBlocks::over() const {
  const std::lock_guard lock(mutex_);
  return given_.empty() && (over_ || (job_.ended && job_.ended()));
}

void PsRecordBlocks::check_wait() {
  const std::lock_guard lock(mutex_);
  if (job_.check) job_.check();
  if (!job_.ask || over_ || !given_.empty() || std::exchange(starves_, true)) return;
  job_.ask({.records = 0, .limit = wish_.limit, .starves = true});
}

namespace {

constexpr Duration kOneTry = std::chrono::seconds(5);
// The time between two checks for an interrupt: long enough to cost nothing, short enough for a
// quick answer to Ctrl-C.
constexpr Duration kInterruptCheck = std::chrono::milliseconds(250);
constexpr Duration kSaySlow = std::chrono::seconds(10);

WorkerTaskOptions machine_options(const PsStoreOptions& options, const WorkerState& core) {
  WorkerTaskOptions machine;
  machine.worker = options.task.index;
  machine.workers = int(options.spec.workers.size());
  for (std::size_t i = 0; i < options.spec.ps.size(); ++i) {
    machine.ps.push_back(fmt::format("ps:{} at {}", i, options.spec.ps[i]));
  }
  machine.cluster_id = options.cluster_id;
  machine.incarnation = std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count());
  machine.process = this_process();
  machine.fingerprint = fingerprint_of(core.variables());
  machine.flags = options.agreed_flags;
  machine.declare = {.last_step = options.last_step,
                     .aggregation = options.aggregation,
                     .shares_records = options.shares_records,
                     .variables = {core.variables().begin(), core.variables().end()},
                     .pieces = {core.pieces().begin(), core.pieces().end()}};
  machine.join_timeout = options.join_timeout;
  machine.reconnect_timeout = options.reconnect_timeout;
  machine.say_after = options.say_after;
  return machine;
}

}  // namespace

WorkerDriver::WorkerDriver(const PsStoreOptions& options, WorkerState& core)
    : options_(options), core_(core), machine_(machine_options(options, core), now()) {
  if (!options.shares_records) return;
  records_ = std::make_shared<PsRecordBlocks>(
      PsRecordBlocks::Job{.ask = [this](const RecordWish& wish) { ask_records(wish); },
                          .ended = [this] { return core_.training_ended.load(); },
                          .check =
                              [this] {
                                core_.check();
                                if (options_.check_interrupt) options_.check_interrupt();
                              }});
}

WorkerDriver::~WorkerDriver() { stop(); }

void WorkerDriver::stop() {
  if (records_) records_->leave();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (!keeper_.joinable()) return;
  core_.fail({ErrorCode::kCancelled, "[store] it is closed"});  // it also ends a try to connect
  changed_.notify_all();
  keeper_.join();
}

void WorkerDriver::use(Link& link, const std::vector<std::unique_ptr<PsConnection>>& connections) {
  link_ = &link;
  connections_ = &connections;
}

// Calls event() under the lock, and publishes what it has changed.
template <typename Event>
auto WorkerDriver::change(Event&& event) {
  struct Publish {
    WorkerDriver& driver;
    std::unique_lock<std::mutex> lock;
    ~Publish() {
      driver.publish();
      lock.unlock();
      driver.core_.notify();
    }
  };
  const Publish publish{*this, std::unique_lock(mutex_)};
  return event();
}

// Publishes the state of the state machine. Writes steps_done after the global step and the
// contributors, since a thread that sees a step as done must also find these.
void WorkerDriver::publish() {
  core_.global_step = machine_.global_step();
  core_.last_contributors = machine_.last_contributors();
  core_.steps_sent = machine_.next_step();
  core_.steps_done = machine_.steps_done();
  core_.steps_given = machine_.steps_given();
  core_.scale = machine_.scale().scale;
  core_.scaled_round = machine_.scale().round;
  core_.round_is_open = machine_.round_is_open();
  core_.all_warm = machine_.job_state().all_warm;
  core_.any_done = machine_.job_state().any_done;
  core_.all_done = machine_.job_state().all_done;
  core_.training_ended = machine_.training_ended();
  core_.stop_asked = machine_.stop_asked();
  core_.state_asked = machine_.state_asked();
  joined_ = machine_.joined();
  initialised_ = machine_.initialised();
  all_closed_ = machine_.all_closed();
  may_begin_ = machine_.may_begin_step();
  core_.cut_off = machine_.cut_off();
  has_actions_ = !out_.empty();
  if (has_actions_) changed_.notify_all();
}

void WorkerDriver::received(int ps, const ControlMessage& message) {
  try {
    GivenRecords given;
    change([&] {
      machine_.received(ps, message, now(), out_);
      if (records_) given = machine_.take_records();
    });
    if (!given.ranges.empty() || given.over) records_->add(given);
  } catch (const Error& error) {
    // These two codes are final: the ps has refused this worker, or its values are lost.
    if (error.code() != ErrorCode::kFailedPrecondition && error.code() != ErrorCode::kAborted)
      throw;
    core_.fail(error);
  }
}

WorkerTask::Closed WorkerDriver::closed(int ps, const Error& error,
                                        const WorkerTask::Ended& ended) {
  return change([&] {
    const WorkerTask::Closed closed = machine_.closed(ps, error, ended, now(), out_);
    if (closed == WorkerTask::Closed::kCutOff) {
      ++core_.cuts;
      if (!keeper_.joinable() && !stopping_) keeper_ = std::thread([this] { keep_connected(); });
    }
    cut_ = true;
    changed_.notify_all();
    return closed;
  });
}

// Runs on a thread of its own, since the step thread may compute for long, and would not notice a
// cut while it computes.
void WorkerDriver::keep_connected() {
  constexpr Duration kLongest = std::chrono::hours(1);
  try {
    while (true) {
      const TimePoint next = change([&] { return machine_.tick(now(), out_); });
      carry_out();
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::min(next - now(), kLongest),
                        [&] { return stopping_ || cut_ || !out_.empty(); });
      cut_ = false;
      if (stopping_) return;
    }
  } catch (const Error& error) {
    core_.fail(error);
  }
}

void WorkerDriver::carry_out() {
  std::vector<Outbox::Action> actions;
  {
    const std::lock_guard sending(sending_mutex_);
    {
      const std::lock_guard lock(mutex_);
      actions.swap(out_.actions());
      has_actions_ = false;
    }
    for (const Outbox::Action& action : actions) carry_out(action);
  }
  for (const Outbox::Action& action : actions) {
    if (const auto* const to = std::get_if<Outbox::Connect>(&action)) connect(int(to->peer));
  }
}

void WorkerDriver::carry_out(const Outbox::Action& action) {
  if (const auto* const send = std::get_if<Outbox::Send>(&action)) {
    (*connections_)[std::size_t(send->to)]->send_job_control(send->message);
  } else if (const auto* const line = std::get_if<Outbox::Line>(&action)) {
    if (options_.say) options_.say(line->before + line->after);
  }
}

void WorkerDriver::connect(int ps) {
  PsConnection& connection = *(*connections_)[std::size_t(ps)];
  try {
    connection.connect(*link_, Deadline::after(kOneTry).or_when_readable(core_.failure().fd()));
    change([&] { machine_.connected(ps, connection.wire(), out_); });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;
    change([&] {
      machine_.connect_failed(ps, error.what(), now());
      cut_ = true;  // wakes the keeper, which asks the state machine when to try again
    });
  }
}

template <typename Ready>
void WorkerDriver::wait(Ready&& ready) {
  while (true) {
    const TimePoint next = change([&] { return machine_.tick(now(), out_); });
    carry_out();
    if (ready()) return;
    const TimePoint turn = std::min(next, now() + kInterruptCheck);
    core_.wait(Deadline::at(turn, *options_.clock), [&] { return ready() || has_actions_; });
    if (options_.check_interrupt) options_.check_interrupt();
  }
}

void WorkerDriver::join() {
  wait([this] { return joined_.load(); });
}

void WorkerDriver::wait_initialised() {
  if (initialised_) return;
  change([this] { machine_.wait_initialised(now()); });
  wait([this] { return initialised_.load(); });
}

bool WorkerDriver::was_initialised() const {
  const std::lock_guard lock(mutex_);
  return machine_.was_initialised();
}

int WorkerDriver::written(int ps) const {
  const std::lock_guard lock(mutex_);
  return machine_.written(ps);
}

std::int64_t WorkerDriver::next_step() const {
  const std::lock_guard lock(mutex_);
  return machine_.next_step();
}

Staleness WorkerDriver::staleness() const {
  const std::lock_guard lock(mutex_);
  return machine_.staleness();
}

// The restored state does not change once the variables are initialised.
const std::optional<TaskState>& WorkerDriver::restored() const {
  const std::lock_guard lock(mutex_);
  return machine_.restored();
}

std::uint64_t WorkerDriver::take_state_asked() {
  return change([this] {
    const std::uint64_t asked = machine_.state_asked();
    machine_.set_state_told();
    return asked;
  });
}

void WorkerDriver::ask_records(const RecordWish& wish) {
  change([&] { machine_.ask_records(wish, out_); });
  carry_out();
}

void WorkerDriver::set_done() {
  change([this] { machine_.set_done(out_); });
  carry_out();
}

void WorkerDriver::end_training() {
  change([this] { machine_.end_training(out_); });
  carry_out();
}

bool WorkerDriver::has_closed(int ps) const {
  const std::lock_guard lock(mutex_);
  return machine_.has_closed(ps);
}

void WorkerDriver::say_goodbye() {
  change([this] { machine_.leave(out_); });
  carry_out();
}

// Waits for other workers as long as they live. If one dies, the ps tasks notice that its
// connection has ended, and go on without it: they raise this worker's limit, or close the round.
template <typename Ready>
void WorkerDriver::wait_for_others(Ready&& ready) {
  std::optional<AccountScope> scope;
  if (options_.account != nullptr) scope.emplace(*options_.account, Activity::kWait);
  TimePoint say_at = now() + kSaySlow;
  while (!core_.wait(Deadline::after(kInterruptCheck), ready)) {
    if (options_.check_interrupt) options_.check_interrupt();
    if (now() < say_at) continue;
    say_at = now() + kSaySlow;
    if (options_.say) options_.say("waits for " + awaited_others());
  }
}

std::string WorkerDriver::awaited_others() const {
  if (in_rounds()) return fmt::format("round {} to be closed", core_.global_step.load());
  return fmt::format("slower workers: it is {} own steps ahead (--staleness)",
                     options_.aggregation.staleness + 1);
}

void WorkerDriver::wait_for_rounds(std::int64_t step) {
  if (core_.steps_done >= step) return;
  wait_for_others([&] { return core_.steps_done >= step; });
}

void WorkerDriver::commit(const CommittedRound& committed) {
  change([&] { machine_.commit(committed, out_); });
  carry_out();
}

void WorkerDriver::withdraw(std::int64_t step) {
  change([&] { machine_.withdraw(step, out_); });
  carry_out();
}

void WorkerDriver::await_round(std::int64_t round) {
  change([&] { machine_.await_round(round, out_); });
  carry_out();
}

void WorkerDriver::begin_again(const std::string& why, const BeginAgain& again) {
  change([&] { machine_.begin_again(why, again, now(), out_); });
  wait([this] {
    core_.check();
    return false;
  });
}

std::uint64_t WorkerDriver::ps_incarnation() const {
  const std::lock_guard lock(mutex_);
  return machine_.ps_incarnation();
}

std::uint64_t WorkerDriver::begin_step(bool& outdated) {
  if (options_.timeline != nullptr) {
    for (const auto& connection : *connections_) connection->ask_clock();
  }
  outdated = !in_rounds() && (!permitted_ || options_.aggregation.outdates_answers());
  if (!permitted_ && !may_begin_) wait_for_others([this] { return may_begin_.load(); });
  std::unique_lock lock(mutex_);
  const std::uint64_t step = std::uint64_t(machine_.begin_step());
  core_.steps_sent = machine_.next_step();
  may_begin_ = machine_.may_begin_step();
  if (!records_) return step;
  machine_.reads_records(records_->reads(), out_);
  lock.unlock();
  carry_out();
  return step;
}

void WorkerDriver::end_step() { permitted_ = may_begin_; }

}  // namespace paceline
