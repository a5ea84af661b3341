#include "params/collective/collective_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "net/tls/link_security.h"
#include "params/job_control.h"
#include "params/wire/traced_messages.h"
#include "params/wire/variables.h"

namespace paceline {
namespace {

// Long enough to cost nothing, short enough for Ctrl-C.
constexpr Duration kLookAround = std::chrono::milliseconds(250);
// So long an interrupted worker goes on to wait for a step that it has begun: the others are mostly
// interrupted, too, and all end with the same step.
constexpr Duration kFinishStep = std::chrono::milliseconds(400);
constexpr Duration kGoodbyeTimeout = std::chrono::seconds(5);

CollectiveGroupOptions group_options(const CollectiveOptions& options) {
  return {.worker = options.task.index,
          .workers = int(options.spec.workers.size()),
          .join_timeout = options.join_timeout,
          .warm_steps = kUntimedSteps,
          .repeats_steps = options.sync_batch_norm,
          .counted_by_ps = options.rounds != nullptr};
}

std::unique_ptr<Link> link_of(const CollectiveOptions& options) {
  LinkOptions link;
  link.security = load_security(options.security);
  link.refused = options.say;
  if (options.link_factory) return options.link_factory(link);
  return traced(make_link(options.link, link), options.timeline);
}

}  // namespace

CollectiveDriver::CollectiveDriver(const CollectiveOptions& options, HeldVariables& variables)
    : options_(options),
      variables_(variables),
      layout_(variables.specs()),
      incarnation_(std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count())),
      fingerprint_(paceline::fingerprint_of(variables.specs())),
      group_(group_options(options), options.clock->now()),
      exchanged_(options.task.index, int(options.spec.workers.size())),
      current_(options.spec.workers.size()),
      gone_links_(options.spec.workers.size()),
      tries_(options.spec.workers.size()),
      collectives_(make_collectives()),
      link_(link_of(options)) {
  if (options.shares_records) records_ = std::make_shared<GroupRecordBlocks>(*this);
  listen();
  ticks_.emplace(CollectiveGroup::kTick, [this] { change([this] { tick(); }); });
  keeper_ = std::thread([this] { keep_connected(); });
}

// The link goes before what its threads call.
CollectiveDriver::~CollectiveDriver() {
  if (records_) records_->leave();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.raise();
  keeper_wakes_.notify_all();
  keeper_.join();
  ticks_.reset();
  link_.reset();
}

void CollectiveDriver::tick() {
  if (options_.rounds != nullptr) {
    group_.set_cut_off(options_.rounds->is_cut_off(), now(), out_);
  }
  group_.tick(now(), out_);
}

std::uint64_t CollectiveDriver::tag_of(std::uint64_t epoch, std::int64_t step) {
  const std::uint64_t tag = (epoch ^ (epoch >> 29)) * 0xbf58476d1ce4e5b9u + std::uint64_t(step) + 1;
  return tag == 0 ? 1 : tag;
}

// Lets the reduction do what the machine's state asks for. It opens an attempt before any member
// can hear that this one has begun the step.
void CollectiveDriver::follow() {
  const CollectiveBegin* const begun = group_.begun_by(options_.task.index);
  const std::uint64_t tag = tag_of(group_.epoch(), group_.step());
  const bool safe = parked_ || group_.has_values();
  if (group_.must_rest() && rests_for_ != group_.proposed_epoch() && safe) {
    rests_for_ = group_.proposed_epoch();
    collectives_->rest();
  }
  if (begun != nullptr && !group_.proposes() && opened_ != tag) {
    opened_ = tag;
    collectives_->open(tag);
  }
  if (group_.started() && started_ != tag) {
    started_ = tag;
    collectives_->start(reduction_group());
  }
}

ReductionGroup CollectiveDriver::reduction_group() const {
  ReductionGroup group;
  group.tag = tag_of(group_.epoch(), group_.step());
  group.members = group_.members();
  group.rank = int(std::ranges::find(group.members, options_.task.index) - group.members.begin());
  group.in_place = group_.in_place();
  double examples = 0;
  for (const std::int32_t member : group.members)
    examples += double(group_.begun_by(member)->examples);
  for (const std::int32_t member : group.members) {
    const double own = double(group_.begun_by(member)->examples);
    group.weights.push_back(
        float(examples > 0 ? own / examples : 1.0 / double(group.members.size())));
  }
  return group;
}

void CollectiveDriver::flush() {
  for (const Outbox::Action& action : out_.actions()) {
    if (const auto* const send = std::get_if<Outbox::Send>(&action)) {
      if (const CollectiveConnection* to = current_[std::size_t(send->to)]) {
        send_message(*to, send->message);
      }
    } else if (const auto* const line = std::get_if<Outbox::Line>(&action)) {
      if (options_.say) options_.say(line->before);
    }
  }
  out_.clear();
}

void CollectiveDriver::show() {
  shown_.met = group_.met();
  shown_.has_values = group_.has_values();
  if (group_.has_values()) shown_.had_values = true;
  shown_.may_begin = group_.may_begin();
  shown_.step = std::max<std::int64_t>(group_.step(), 0);
  shown_.commits = group_.commits();
  shown_.takes = group_.takes();
  shown_.epoch = group_.has_values() ? group_.epoch() : 0;
  shown_.all_warm = group_.all_warm();
  shown_.any_done = group_.any_done();
  shown_.all_done = group_.all_done();
  shown_.all_retired = group_.all_retired();
  shown_.ended = group_.training_ended();
  shown_.saves = group_.saves();
  if (!group_.failure().empty() && !shown_.failed) {
    shown_.came_too_late = group_.came_too_late();
    fail({ErrorCode::kUnavailable, group_.failure()});
  }
  if (!group_.lacking().empty() || !closing_.empty()) keeper_wakes_.notify_all();
}

void CollectiveDriver::fail(const Error& error) {
  {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = error;
  }
  shown_.failed = true;
  wakeup_.notify();
}

void CollectiveDriver::check() const {
  if (!shown_.failed) return;
  const std::lock_guard lock(error_mutex_);
  if (shown_.came_too_late) throw JobIsOver(error_->what());
  throw *error_;
}

// Waits as long as it takes: whoever is missing is found to be, and the machine goes on without it.
// Not where the ps tasks of the other variables are lost: a member that is cut off from them
// commits nothing.
void CollectiveDriver::wait(const std::function<bool()>& ready, const char* what) {
  TimePoint say_at = now() + options_.say_after;
  std::optional<TimePoint> leave_at;
  while (!ready()) {
    check();
    if (options_.rounds != nullptr) options_.rounds->check();
    wakeup_.wait(*link_, Deadline::after(kLookAround), [&] { return ready() || shown_.failed; });
    if (what == nullptr) {
      if (!ready()) leave_step_if_interrupted(leave_at);
      continue;
    }
    if (options_.check_interrupt) options_.check_interrupt();
    if (ready() || now() < say_at || !options_.say) continue;
    say_at = TimePoint::max();
    std::string missing;
    {
      const std::lock_guard lock(mutex_);
      missing = group_.missing_text();
    }
    options_.say(fmt::format("waits for {}{}", what, missing.empty() ? "" : ": " + missing));
  }
  check();
}

// A worker that leaves a step is to the others as one that was lost: they commit it without this
// one, unless they have committed it already; then this one learns of that, and finishes it.
void CollectiveDriver::leave_step_if_interrupted(std::optional<TimePoint>& leave_at) {
  if (!options_.check_interrupt || options_.rounds || !collectives_->survives_losses()) return;
  try {
    options_.check_interrupt();
  } catch (...) {
    if (!leave_at) leave_at = now() + kFinishStep;
    if (now() < *leave_at) return;
    const bool left = change([this] {
      if (group_.begun_by(options_.task.index) == nullptr) return false;
      parked_ = true;
      group_.retire(true, now(), out_);
      return true;
    });
    if (!left) return;
    shown_.left_step = true;
    throw;
  }
}

void CollectiveDriver::wait_in_step(const std::function<bool()>& ready) { wait(ready, nullptr); }

void CollectiveDriver::join() {
  wait([this] { return shown_.met.load(); }, "the other workers");
}

bool CollectiveDriver::founded() const {
  const std::lock_guard lock(mutex_);
  return group_.founded() && !group_.has_values();
}

std::vector<std::int32_t> CollectiveDriver::unreached() const {
  const std::lock_guard lock(mutex_);
  return group_.missing();
}

void CollectiveDriver::initialise(std::int64_t step, const std::vector<TaskState>& states) {
  change([&] {
    std::vector<std::int64_t> own_steps(options_.spec.workers.size());
    for (const TaskState& state : states) {
      if (std::size_t(state.worker) < own_steps.size()) {
        own_steps[std::size_t(state.worker)] = state.step;
      }
    }
    restored_ = states;
    if (!states.empty()) {
      if (auto unused = unused_of(states.front().position)) {
        group_.records().restore(std::move(*unused));
      }
    }
    group_.initialise(step, own_steps, now(), out_);
  });
  wait_values();
}

// The step thread waits, and reads no values.
void CollectiveDriver::park() {
  change([this] { parked_ = true; });
}

void CollectiveDriver::wait_values() {
  park();
  wait([this] { return shown_.has_values.load(); }, "the values of the variables");
  unpark([this] { return group_.has_values(); });
}

void CollectiveDriver::use_values() {
  unpark([] { return true; });
}

// Waits until ready() holds under the lock and no values arrive; from then on none do.
template <typename Ready>
void CollectiveDriver::unpark(Ready&& ready) {
  const auto now_ready = [&] {
    const std::lock_guard lock(mutex_);
    if (receives_from_ >= 0 || !ready()) return false;
    parked_ = false;
    return true;
  };
  wait(now_ready, nullptr);
}

void CollectiveDriver::begin_step(const std::shared_ptr<const std::vector<Bucket>>& buckets,
                                  std::int64_t examples) {
  if (options_.timeline != nullptr) ask_clocks();
  park();
  wait([this] { return shown_.may_begin.load(); }, "the other workers");
  unpark([this] { return group_.may_begin(); });
  collectives_->begin(buckets);
  change([&] {
    given_ = options_.rounds == nullptr;
    begun_step_ = group_.step();
    begun_commits_ = group_.commits();
    begun_takes_ = group_.takes();
    begun_epoch_ = group_.epoch();
    begun_tag_ = tag_of(begun_epoch_, group_.step());
    group_.begin({.examples = examples,
                  .own_step = group_.next_own_step(options_.task.index),
                  .made = made_++,
                  .training = fingerprint_of_step(*buckets),
                  .records = records_ ? group_.records().reads(records_->reads())
                                      : std::vector<RecordRange>()},
                 now(), out_);
  });
}

bool CollectiveDriver::wait_committed() {
  park();
  bool committed = false, repeat = false;
  unpark([&] {
    committed = group_.takes() == begun_takes_;
    repeat = must_repeat();
    return group_.commits() > begun_commits_ || !committed || repeat;
  });
  if (repeat) throw RepeatStep();
  return committed;
}

std::unique_lock<std::mutex> CollectiveDriver::change_values() {
  return std::unique_lock(values_mutex_);
}

void CollectiveDriver::set_applied() {
  const std::lock_guard lock(mutex_);
  applied_ = group_.commits();
  keeper_wakes_.notify_all();
}

void CollectiveDriver::set_done() {
  change([this] { group_.set_done(out_); });
}

void CollectiveDriver::end_training() {
  change([this] { group_.end_training(out_); });
}

bool CollectiveDriver::wait_all_retired(Deadline deadline) {
  std::vector<int> heirs;
  {
    const std::lock_guard lock(mutex_);
    if (group_.coordinates()) heirs = group_.waiting_for_values();
  }
  for (const int heir : heirs) send_values(heir, 0, step());
  park();
  change([this] { group_.retire(true, now(), out_); });
  wakeup_.wait(*link_, deadline, [this] { return shown_.all_retired || shown_.failed; });
  const std::lock_guard lock(mutex_);
  return shown_.all_retired && receives_from_ < 0;
}

EndSave CollectiveDriver::wait_end_save(Deadline deadline, bool patient) {
  EndSave by = EndSave::kUnknown;
  wakeup_.wait(*link_, deadline, [&] {
    const std::lock_guard lock(mutex_);
    by = group_.end_save(patient);
    return by != EndSave::kUnknown || shown_.failed;
  });
  check();
  return by;
}

void CollectiveDriver::set_saved() {
  change([this] { group_.set_saved(out_); });
}

void CollectiveDriver::goodbye() {
  const Deadline deadline = Deadline::after(kGoodbyeTimeout);
  std::vector<int> heirs;
  {
    const std::lock_guard lock(mutex_);
    if (group_.coordinates()) heirs = group_.waiting_for_values();
  }
  for (const int heir : heirs) send_values(heir, 0, step());
  change([this] {
    leaving_ = true;
    group_.retire(false, now(), out_);
  });
  for (const auto& connection : connections()) connection->close(deadline);
  const auto all_closed = [this] {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(current_, [](const auto* peer) { return peer == nullptr; });
  };
  wakeup_.wait(*link_, deadline, all_closed);
}

std::int64_t CollectiveDriver::next_own_step() const {
  const std::lock_guard lock(mutex_);
  return group_.next_own_step(options_.task.index);
}

void CollectiveDriver::reduced(std::uint64_t tag) {
  change([&] {
    reduced_ = tag;
    finish_sums();
  });
}

void CollectiveDriver::confirm_given() {
  change([this] {
    given_ = true;
    finish_sums();
  });
}

void CollectiveDriver::confirm_counted(std::int64_t step) {
  change([&] { group_.set_counted(step, now(), out_); });
}

void CollectiveDriver::finish_sums() {
  const bool reduced = reduced_ == started_ && reduced_ == tag_of(group_.epoch(), group_.step());
  if (reduced && given_) group_.finish_sums(now(), out_);
}

std::vector<std::int32_t> CollectiveDriver::contributors() const {
  const std::lock_guard lock(mutex_);
  return group_.contributors();
}

void CollectiveDriver::rested() {
  change([this] {
    if (group_.proposed_epoch() == rests_for_) group_.rested(now(), out_);
  });
}

void CollectiveDriver::failed(const Error& error) { fail(error); }

// A new epoch deals records again.
void CollectiveDriver::tell_dealt() {
  if (!records_) return;
  const std::uint64_t epoch = shown_.epoch;
  if (dealt_.exchange(epoch) != epoch) records_->look_again();
}

}  // namespace paceline
