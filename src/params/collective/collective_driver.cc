#include "params/collective/collective_driver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/address.h"
#include "base/machine_memory.h"
#include "base/row_count.h"
#include "base/this_process.h"
#include "net/link_kind.h"
#include "net/tls/link_security.h"
#include "params/collective/collectives_kind.h"
#include "params/collective/mpi_collectives.h"
#include "params/collective/mpi_library.h"
#include "params/job_control.h"
#include "params/protocol/worker_greeting.h"
#include "params/variable_arrays.h"
#include "params/wire/message.h"
#include "params/wire/traced_messages.h"
#include "params/wire/variables.h"

namespace paceline {
namespace {

// Counts the bytes of values and slots and, for trained variables, also those of the contributions
// and of their sums, which are each as large as the values.
double bytes_needed(std::span<const VariableSpec> variables) {
  double bytes = 0;
  for (const VariableSpec& variable : variables) {
    bytes += double(variable.shape.elements()) * double(size_of(variable.dtype)) *
             double(1 + slots_of(variable).size() + (variable.trained ? 2 : 0));
  }
  return bytes;
}

std::span<std::byte> bytes_of_value(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.raw()), tensor.bytes()};
}

}  // namespace

HeldVariables::HeldVariables(std::vector<VariableSpec> variables) : specs_(std::move(variables)) {
  check_fits_machine("[all-reduce] the variables need", bytes_needed(specs_));
  std::set<std::string> names;
  for (const VariableSpec& spec : specs_) {
    if (!names.insert(spec.name).second) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[all-reduce] two variables are named {}", spec.name));
    }
    values_.emplace_back(spec.dtype, spec.shape);
    memories_.emplace_back(spec, 0, row_count(spec.shape), bytes_of_value(values_.back()));
  }
}

VariableMemory& HeldVariables::at(VariableId variable) {
  if (variable >= 0 && std::size_t(variable) < memories_.size()) {
    return memories_[std::size_t(variable)];
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("[all-reduce] variable {} of {}", variable, memories_.size()));
}

std::vector<HeldVariables::Range> HeldVariables::ranges(std::deque<std::int64_t>& scalars) const {
  std::vector<Range> all;
  for (std::size_t v = 0; v < memories_.size(); ++v) {
    const VariableMemory& memory = memories_[v];
    for (std::size_t array = 0; array < memory.arrays(); ++array) {
      std::span<const std::byte> bytes = memory.array(array);
      if (bytes.empty() && memory.array_bytes(array) == kScalarSlotBytes) {
        scalars.push_back(memory.count());
        bytes = std::as_bytes(std::span(&scalars.back(), 1));
      }
      std::size_t offset = 0;
      do {
        const std::size_t some = std::min(kChunkBytes, bytes.size() - offset);
        all.push_back(
            {std::uint32_t(v), std::uint16_t(array), offset, bytes.subspan(offset, some)});
        offset += some;
      } while (offset < bytes.size());
    }
  }
  return all;
}

void HeldVariables::write(std::uint32_t variable, std::uint16_t array, std::size_t offset,
                          std::span<const std::byte> bytes) {
  const bool known = variable < memories_.size() && array < memories_[variable].arrays();
  const std::size_t size = known ? memories_[variable].array_bytes(array) : 0;
  if (!known || offset > size || bytes.size() > size - offset) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[all-reduce] write of {} bytes at {} of array {} of variable {}",
                            bytes.size(), offset, array, variable));
  }
  memories_[variable].write(array, offset, bytes);
}

void GroupRecordBlocks::leave() {
  {
    const std::lock_guard lock(mutex_);
    driver_ = nullptr;
  }
  tell_changed();
}

std::int64_t GroupRecordBlocks::began(const Wish& wish) {
  set_reads(0);
  const std::lock_guard lock(mutex_);
  limit_ = wish.limit;
  if (driver_ != nullptr) driver_->begin_records();
  return 0;
}

RecordRange GroupRecordBlocks::take(std::int64_t most) {
  const std::lock_guard lock(mutex_);
  return driver_ == nullptr ? RecordRange{} : driver_->take_records(limit_, most);
}

bool GroupRecordBlocks::over() const {
  const std::lock_guard lock(mutex_);
  return driver_ == nullptr || driver_->records_over(limit_);
}

bool GroupRecordBlocks::revoked() const {
  const std::lock_guard lock(mutex_);
  return driver_ != nullptr && driver_->records_revoked();
}

void GroupRecordBlocks::check_wait() {
  const std::lock_guard lock(mutex_);
  if (driver_ != nullptr) driver_->check_job();
}

std::span<std::byte> CollectiveConnection::place_payload(const FrameHeader& header) {
  const std::size_t most = worker < 0 ? kMaxHelloBytes : kMaxControlBytes;
  if (header.payload_bytes > most) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[all-reduce] {} of {} bytes is too long",
                            name_of(MessageType{header.type}), header.payload_bytes));
  }
  if (received_.size() < header.payload_bytes) received_.resize(header.payload_bytes);
  return std::span(received_).first(header.payload_bytes);
}

void CollectiveConnection::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  driver_.received(*this, header, payload);
}

void CollectiveConnection::on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  driver_.shared(*this, id, std::move(memory));
}

void CollectiveConnection::on_closed(const Error& error) {
  closed = true;
  driver_.closed(*this, error);
}

namespace {

// The time between two checks of a waiting thread for an interrupt: long enough to cost nothing,
// short enough for a quick answer to Ctrl-C.
constexpr Duration kLookAround = std::chrono::milliseconds(250);
// How long an interrupted worker waits for the step that it has begun. The other workers are mostly
// interrupted, too, and so end with the same step.
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

// The threads of the link use the other fields of the driver, so the link ends before these do.
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

// Makes the reduction do what the group's state machine asks for. Opens an attempt at a step before
// any member can hear that this worker has begun the step.
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

// Waits for ready() without a limit: if a worker is missing, the group's state machine notices and
// goes on without that worker. If some variables are on ps tasks and these are lost, the wait ends
// with an error, since a member that is cut off from them commits nothing.
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

// An interrupted worker abandons its step. The other members then think that this worker is lost,
// and commit the step without its contribution. If they have already committed the step with its
// contribution, this worker learns of the commit and finishes the step.
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

// Marks that the step thread waits, and so reads no values.
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

// Waits until ready() holds and no values are arriving; checks both under the lock. From then on no
// values are accepted.
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

// Wakes the data pipeline when a new epoch has dealt records.
void CollectiveDriver::tell_dealt() {
  if (!records_) return;
  const std::uint64_t epoch = shown_.epoch;
  if (dealt_.exchange(epoch) != epoch) records_->look_again();
}

// The connections of an all-reduce. A worker connects to each worker of lower index, and tries
// again until this succeeds.

namespace {

constexpr Duration kOneTry = std::chrono::seconds(2);
constexpr Duration kBetweenTries = std::chrono::milliseconds(300);
// A peer that has called must say within this time who it is.
constexpr Duration kHelloWithin = std::chrono::seconds(5);
constexpr std::size_t kMostUnidentified = 64;
// The record of a connection that has ended is kept for this time, after which no thread is still
// in one of its calls.
constexpr Duration kForgottenAfter = std::chrono::seconds(5);
constexpr Duration kClosingPatience = std::chrono::seconds(2);

FrameHeader header_of(MessageType type, std::size_t bytes, std::uint64_t step = 0) {
  return {.payload_bytes = std::uint32_t(bytes), .type = std::uint16_t(type), .step = step};
}

}  // namespace

std::string CollectiveDriver::text_of(int worker) const {
  return fmt::format("worker:{} at {}", worker, options_.spec.workers[std::size_t(worker)]);
}

void CollectiveDriver::listen() {
  const std::string& own = options_.spec.workers[std::size_t(options_.task.index)];
  const auto acceptor = [this](std::shared_ptr<Connection> peer) {
    return accept(std::move(peer));
  };
  std::string address;
  try {
    address = link_->listen(options_.bind.empty() ? own : options_.bind, acceptor);
  } catch (const Error& error) {
    const bool not_here = error.code() == ErrorCode::kNotFound && options_.bind.empty();
    throw Error(error.code(),
                fmt::format("{}: {}{}", options_.task.str(), error.what(),
                            not_here ? "; --bind 0.0.0.0 listens at every address of this host, at "
                                       "the port that the cluster says"
                                     : ""));
  }
  const bool is_open = options_.security.tls == Tls::kNever;
  if (!link_traits(link_->kind()).within_a_process && is_open && !is_loopback(address) &&
      options_.say) {
    options_.say(
        fmt::format("{} listens on {}: not encrypted, not authenticated; use it only in a network "
                    "that you trust",
                    options_.task.str(), address));
  }
}

Receiver* CollectiveDriver::accept(std::shared_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  const auto unidentified = std::ranges::count_if(
      peers_, [](const auto& peer) { return peer->worker < 0 && !peer->closed; });
  if (leaving_ || std::size_t(unidentified) >= kMostUnidentified) {
    throw Error(ErrorCode::kUnavailable, "[all-reduce] too many connections that say nothing");
  }
  peers_.push_back(std::make_unique<CollectiveConnection>(*this, -1, now()));
  peers_.back()->connection = std::move(connection);
  return peers_.back().get();
}

Hello CollectiveDriver::hello(int to) const {
  Hello hello;
  hello.role = "worker";
  hello.index = options_.task.index;
  hello.cluster_id = options_.cluster_id;
  hello.incarnation = incarnation_;
  hello.fingerprint = fingerprint_;
  hello.flags = options_.agreed_flags;
  hello.ps = to;
  hello.workers = int(options_.spec.workers.size());
  if (options_.rounds != nullptr) hello.ps_incarnation = options_.rounds->ps_incarnation();
  hello.process = this_process();
  return hello;
}

void CollectiveDriver::keep_connected() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      keeper_wakes_.wait_for(lock, kBetweenTries / 3, [this] {
        return stopping_ || !closing_.empty() ||
               (!group_.lacking().empty() && applied_ == group_.commits());
      });
      if (stopping_) return;
    }
    try {
      close_idle();
      connect_missing();
      send_lacking_values();
    } catch (const Error& error) {
      fail(error);
    }
  }
}

void CollectiveDriver::connect_missing() {
  std::vector<int> missing;
  {
    const std::lock_guard lock(mutex_);
    if (leaving_) return;
    for (int w = 0; w < options_.task.index; ++w) {
      if (current_[std::size_t(w)] == nullptr && now() >= tries_[std::size_t(w)].next) {
        missing.push_back(w);
      }
    }
  }
  for (const int worker : missing) connect(worker);
}

void CollectiveDriver::connect(int worker) {
  CollectiveConnection* peer = nullptr;
  {
    const std::lock_guard lock(mutex_);
    // Does not call the peer again while it may still greet on this connection.
    tries_[std::size_t(worker)].next = now() + kHelloWithin;
    peers_.push_back(
        std::make_unique<CollectiveConnection>(*this, worker, now(), options_.timeline));
    peer = peers_.back().get();
  }
  try {
    std::shared_ptr<Connection> made =
        link_->connect(options_.spec.workers[std::size_t(worker)], *peer,
                       Deadline::after(kOneTry).or_when_readable(stop_.fd()));
    const std::lock_guard lock(mutex_);
    peer->connection = std::move(made);
    send_message(*peer, {MessageType::kHello, hello(worker)});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;
    const std::lock_guard lock(mutex_);
    peer->closed = true;
    peer->ended = now();
    tries_[std::size_t(worker)] = {now() + kBetweenTries, error.what()};
  }
}

// Ends connections that were replaced or refused, and connections whose peers have not said in time
// who they are.
void CollectiveDriver::close_idle() {
  std::vector<Closing> closing;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& peer : peers_) {
      const bool silent = peer->worker < 0 && !peer->closed && peer->connection != nullptr &&
                          now() - peer->since() > kHelloWithin;
      if (silent) closing_.push_back({peer->connection, Deadline::after(Duration(0))});
    }
    closing = std::exchange(closing_, {});
    std::erase_if(peers_, [this](const auto& peer) {
      return peer->ended && now() - *peer->ended > kForgottenAfter;
    });
  }
  for (const Closing& each : closing) each.connection->close(each.deadline);
}

void CollectiveDriver::close_later(CollectiveConnection& peer, Duration patience) {
  if (peer.connection == nullptr) return;
  closing_.push_back({peer.connection, Deadline::after(patience)});
  keeper_wakes_.notify_all();
}

void CollectiveDriver::received(CollectiveConnection& from, const FrameHeader& header,
                                std::span<const std::byte> payload) {
  const int worker = from.worker;
  const MessageType type{header.type};
  check_flags(header);
  if (worker < 0) return take_greeting(from, header, payload);
  switch (type) {
    case MessageType::kPartialSum:
    case MessageType::kContributedRows:
    case MessageType::kInPlace:
      if (over_links_ == nullptr) break;
      return over_links_->arrived(worker, header, payload);
    case MessageType::kExchangedSums:
      return take_sums(worker, header, payload);
    case MessageType::kWrite:
    case MessageType::kValuesSent:
      return take_value_frame(worker, header, payload);
    case MessageType::kTaskState:
      return take_state(from, header, payload);
    case MessageType::kAskState:
      return change([&] {
        state_asker_ = worker;
        shown_.state_asked = header.step;
      });
    case MessageType::kAskProgress:
      return tell_progress(worker);
    case MessageType::kProgress:
      return hear_progress(from, decode_text(payload, type));
    case MessageType::kAskClock:
      return tell_clock(header, *from.connection);
    case MessageType::kClock:
      return from.clock.answered(header, *from.connection);
    case MessageType::kRefuse:
      return fail({ErrorCode::kFailedPrecondition, decode_text(payload, type)});
    default:
      break;
  }
  if (!is_control_for_peer(type)) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[all-reduce] {} is no message of workers", name_of(type)));
  }
  const ControlMessage message = decode_control(type, payload, header.step);
  change([&] {
    if (current_[std::size_t(worker)] == &from) group_.received(worker, message, now(), out_);
  });
}

void CollectiveDriver::take_greeting(CollectiveConnection& from, const FrameHeader& header,
                                     std::span<const std::byte> payload) {
  const MessageType type{header.type};
  if (type == MessageType::kHello && from.expected() < 0) {
    return take_hello(from, decode_hello(payload));
  }
  if (type == MessageType::kWelcome && from.expected() >= 0) {
    return take_welcome(from, decode_welcome(payload));
  }
  if (type == MessageType::kRefuse && from.expected() >= 0) {
    return fail({ErrorCode::kFailedPrecondition,
                 fmt::format("{} refuses {}: {}", text_of(from.expected()), options_.task.str(),
                             decode_text(payload, type))});
  }
  throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] {} is no greeting", name_of(type)));
}

void CollectiveDriver::take_hello(CollectiveConnection& from, const Hello& theirs) {
  change([&] {
    const Hello ours = hello(-1);
    std::string why = greeting_refusal(ours, theirs);
    // One of the two workers has not heard yet that ps 0 lost its values. This connection ends, and
    // the peer will call again.
    if (why.empty() && theirs.ps_incarnation != ours.ps_incarnation) {
      return close_later(from, Duration(0));
    }
    const CollectiveConnection* const known =
        why.empty() ? current_[std::size_t(theirs.index)] : nullptr;
    if (known != nullptr && theirs.incarnation < known->incarnation) {
      why = fmt::format("a newer process of worker:{} is connected", theirs.index);
    }
    if (!why.empty()) {
      send_message(from, {MessageType::kRefuse, why});
      return close_later(from, kClosingPatience);
    }
    Welcome welcome;
    welcome.incarnation = incarnation_;
    send_message(from, {MessageType::kWelcome, welcome});
    identify(from, theirs.index, theirs.incarnation);
  });
}

void CollectiveDriver::take_welcome(CollectiveConnection& from, const Welcome& welcome) {
  change([&] {
    if (from.connection == nullptr) {
      throw Error(ErrorCode::kDataLoss, "[all-reduce] a welcome before the hello");
    }
    identify(from, from.expected(), welcome.incarnation);
  });
  from.clock.begin(*from.connection);
}

// Notes which worker the peer is. Closes an older connection with the same worker, if there is one.
void CollectiveDriver::identify(CollectiveConnection& from, int worker, std::uint64_t incarnation) {
  CollectiveConnection*& current = current_[std::size_t(worker)];
  if (current != nullptr) {
    close_later(*current, Duration(0));
    group_.disconnected(worker, "a new connection took its place", now(), out_);
    if (receives_from_ == worker) receives_from_ = -1;
  }
  current = &from;
  from.incarnation = incarnation;
  from.worker = worker;
  if (options_.timeline != nullptr) {
    const bool called = from.expected() >= 0;
    options_.timeline->name_peer(
        called ? options_.spec.workers[std::size_t(worker)] : from.connection->peer(),
        fmt::format("worker:{}", worker));
  }
  const bool shares =
      over_links_ != nullptr && options_.share_memory && from.connection->can_share();
  if (shares) {
    from.connection->share(LinkCollectives::kContributions, over_links_->contributions());
    from.connection->share(LinkCollectives::kSums, over_links_->sums());
  }
  group_.connected(worker, shares, now(), out_);
}

void CollectiveDriver::shared(CollectiveConnection& from, std::uint32_t id,
                              std::shared_ptr<const SharedMemory> memory) {
  if (from.worker < 0 || over_links_ == nullptr) {
    throw Error(ErrorCode::kDataLoss, "[all-reduce] memory that nobody wants");
  }
  over_links_->take_memory(from.worker, id, std::move(memory));
}

void CollectiveDriver::count_ended(const CollectiveConnection& from) {
  if (from.connection == nullptr) return;
  const Traffic& traffic = from.connection->traffic();
  gone_.bytes_sent += traffic.bytes_sent;
  gone_.bytes_received += traffic.bytes_received;
  gone_.transfer += Duration(traffic.busy_ns);
  if (from.worker >= 0) add_link(gone_links_[std::size_t(from.worker)], from);
}

void CollectiveDriver::closed(CollectiveConnection& from, const Error& error) {
  change([&] {
    from.ended = now();
    count_ended(from);
    const int worker = from.worker;
    if (from.expected() >= 0) {
      tries_[std::size_t(from.expected())] = {now() + kBetweenTries, error.what()};
    }
    if (worker < 0 || current_[std::size_t(worker)] != &from) return;
    current_[std::size_t(worker)] = nullptr;
    // A worker that is leaving must not treat the ends of its connections as losses, nor propose
    // anything to the workers that are still connected.
    if (stopping_) return;
    if (receives_from_ == worker) receives_from_ = -1;
    inbox_.lose(worker);
    lose_member(worker, error);
    group_.disconnected(worker, error.what(), now(), out_);
  });
}

void CollectiveDriver::send_message(const CollectiveConnection& to,
                                    const ControlMessage& message) const {
  if (to.connection == nullptr || to.closed) return;
  const std::vector<std::byte> bytes = encode(message);
  to.connection->send_copy(header_of(message.type, bytes.size(), message.step), bytes);
}

std::shared_ptr<Connection> CollectiveDriver::connection_of(int worker) const {
  const std::lock_guard lock(mutex_);
  const CollectiveConnection* const peer = current_[std::size_t(worker)];
  return peer == nullptr ? nullptr : peer->connection;
}

void CollectiveDriver::send(int worker, const FrameHeader& header,
                            std::span<const std::byte> payload, void (*sent)(void*),
                            void* context) {
  if (const auto connection = connection_of(worker)) {
    connection->send(header, payload, sent, context);
  } else {
    sent(context);
  }
}

void CollectiveDriver::send_copy(int worker, const FrameHeader& header,
                                 std::span<const std::byte> payload) {
  if (const auto connection = connection_of(worker)) connection->send_copy(header, payload);
}

std::vector<std::shared_ptr<Connection>> CollectiveDriver::connections() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Connection>> all;
  for (const CollectiveConnection* const peer : current_) {
    if (peer != nullptr) all.push_back(peer->connection);
  }
  return all;
}

StoreAccount CollectiveDriver::account() const {
  StoreAccount account;
  {
    const std::lock_guard lock(mutex_);
    account = gone_;
  }
  for (const auto& connection : connections()) {
    const Traffic& traffic = connection->traffic();
    account.bytes_sent += traffic.bytes_sent;
    account.bytes_received += traffic.bytes_received;
    account.transfer += Duration(traffic.busy_ns);
  }
  return account;
}

void CollectiveDriver::add_link(StoreLink& link, const CollectiveConnection& of) {
  const Connection& connection = *of.connection;
  link.to = fmt::format("worker:{}", of.worker);
  link.kind = std::string(connection.kind());
  link.encrypted = connection.encrypted();
  link.round_trip = connection.round_trip();
  link.bytes_sent += connection.traffic().bytes_sent;
  link.bytes_received += connection.traffic().bytes_received;
}

std::vector<StoreLink> CollectiveDriver::links() const {
  const std::lock_guard lock(mutex_);
  std::vector<StoreLink> links = gone_links_;
  for (std::size_t w = 0; w < current_.size(); ++w) {
    if (current_[w] != nullptr) add_link(links[w], *current_[w]);
  }
  std::erase_if(links, [](const StoreLink& link) { return link.to.empty(); });
  return links;
}

// The values that are sent to joiners, and the states of workers for a checkpoint.

namespace {

// A state with this number is the joiner's own state, from the checkpoint from which training
// resumes. Any other number is that of the save that asked for the state.
constexpr std::uint64_t kRestoredState = ~std::uint64_t{0};

// Counts the frames that borrow values, until they are sent.
class SentFrames {
 public:
  void begin() { ++under_way_; }
  static void sent(void* self) {
    SentFrames& frames = *static_cast<SentFrames*>(self);
    const std::lock_guard lock(frames.mutex_);
    --frames.under_way_;
    frames.changed_.notify_all();
  }
  // Waits until all frames are sent. When the connection ends, all of them count as sent.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return under_way_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> under_way_{0};
};

}  // namespace

// Sends each joiner the values, which do not change before the joiner has contributed.
void CollectiveDriver::send_lacking_values() {
  while (true) {
    int worker = -1;
    std::uint64_t epoch = 0;
    std::int64_t step = 0;
    {
      const std::lock_guard lock(mutex_);
      if (group_.lacking().empty() || applied_ != group_.commits()) return;
      worker = group_.lacking().front();
      epoch = group_.epoch();
      step = group_.step();
    }
    send_values(worker, epoch, step);
    change([&] {
      if (group_.epoch() == epoch) group_.sent_values(worker);
    });
  }
}

// Sends the worker all values and slots. Epoch 0 marks values for a worker that trains no more.
void CollectiveDriver::send_values(int worker, std::uint64_t epoch, std::int64_t step) {
  const std::unique_lock values = change_values();
  const std::shared_ptr<Connection> connection = connection_of(worker);
  if (connection == nullptr) return;
  std::deque<std::int64_t> scalars;
  SentFrames frames;
  for (const HeldVariables::Range& range : variables_.ranges(scalars)) {
    const FrameHeader header{.payload_bytes = std::uint32_t(range.bytes.size()),
                             .type = std::uint16_t(MessageType::kWrite),
                             .flags = range.array,
                             .id = range.variable,
                             .offset = range.offset,
                             .step = epoch};
    frames.begin();
    connection->send(header, range.bytes, &SentFrames::sent, &frames);
  }
  std::optional<TaskState> restored;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(restored_, worker, &TaskState::worker);
    if (found != restored_.end()) {
      restored = std::move(*found);
      restored_.erase(found);
    }
  }
  if (restored) send_state_frames(worker, *restored, kRestoredState);
  const auto number = encode_number(step);
  connection->send_copy({.payload_bytes = std::uint32_t(number.size()),
                         .type = std::uint16_t(MessageType::kValuesSent),
                         .step = epoch},
                        number);
  frames.wait();
}

// A worker accepts values only while its step thread reads none.
bool CollectiveDriver::takes_values_of(std::uint64_t epoch) {
  if (!parked_) return false;
  if (epoch == 0) return group_.standing() != Standing::kMember;
  return group_.wants_values_of(epoch);
}

void CollectiveDriver::take_value_frame(int worker, const FrameHeader& header,
                                        std::span<const std::byte> payload) {
  if (header.type == std::uint16_t(MessageType::kValuesSent)) {
    const std::int64_t step = decode_number(payload, MessageType::kValuesSent);
    return change([&] {
      if (receives_from_ != worker || !takes_values_of(header.step)) return;
      receives_from_ = -1;
      group_.take_values(header.step, step, now(), out_);
    });
  }
  {
    const std::lock_guard lock(mutex_);
    if (!takes_values_of(header.step)) return;
    const bool first = header.id == 0 && header.flags == 0 && header.offset == 0;
    if (first) receives_from_ = worker;
    if (receives_from_ != worker) return;
  }
  variables_.write(header.id, header.flags, header.offset, payload);
}

void CollectiveDriver::send_state_frames(int worker, const TaskState& state, std::uint64_t save) {
  const std::shared_ptr<Connection> connection = connection_of(worker);
  if (connection == nullptr) return;
  const std::vector<std::byte> bytes = encode(state);
  for_state_frames(bytes, [&](std::uint16_t flags, std::span<const std::byte> frame) {
    connection->send_copy({.payload_bytes = std::uint32_t(frame.size()),
                           .type = std::uint16_t(MessageType::kTaskState),
                           .flags = flags,
                           .step = save},
                          frame);
  });
}

void CollectiveDriver::take_state(CollectiveConnection& from, const FrameHeader& header,
                                  std::span<const std::byte> payload) {
  const std::optional<std::vector<std::byte>> whole = from.state.add(header.flags, payload);
  if (!whole) return;
  TaskState state = decode_task_state(*whole);
  if (header.step == kRestoredState) {
    const std::lock_guard lock(mutex_);
    own_restored_ = std::move(state);
  } else {
    state.worker = from.worker;
    inbox_.put(from.worker, header.step, std::move(state));
  }
}

std::optional<TaskState> CollectiveDriver::restored() const {
  const std::lock_guard lock(mutex_);
  return own_restored_;
}

// Asks only workers that have answered the previous question, so that questions do not pile up at a
// worker that stands still.
void CollectiveDriver::ask_progress() {
  const std::lock_guard lock(mutex_);
  for (CollectiveConnection* const peer : current_) {
    if (peer == nullptr || std::exchange(peer->progress_asked, true)) continue;
    send_message(*peer, {MessageType::kAskProgress});
  }
}

// Of two connected workers, the one that made the connection asks the other for its clock.
void CollectiveDriver::ask_clocks() {
  const std::lock_guard lock(mutex_);
  for (CollectiveConnection* const peer : current_) {
    if (peer != nullptr && peer->expected() >= 0 && !peer->closed) {
      peer->clock.ask(*peer->connection);
    }
  }
}

void CollectiveDriver::tell_progress(int worker) {
  const std::string text = options_.progress == nullptr ? "" : options_.progress->asked();
  const std::vector<std::byte> bytes = encode_text(text);
  send_copy(
      worker,
      {.payload_bytes = std::uint32_t(bytes.size()), .type = std::uint16_t(MessageType::kProgress)},
      bytes);
}

void CollectiveDriver::hear_progress(CollectiveConnection& from, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    from.progress_asked = false;
  }
  if (options_.progress == nullptr) return;
  options_.progress->heard(fmt::format("worker:{}", from.worker), std::move(text));
}

// Sends the state to the worker whose save asks for it. If no save asks, this worker makes no more
// steps: it sends the state to all workers, since any of them may write the last checkpoint.
void CollectiveDriver::send_state(const TaskState& state) {
  const std::uint64_t save = shown_.state_asked.exchange(0);
  std::vector<int> to;
  {
    const std::lock_guard lock(mutex_);
    for (int w = 0; w < int(current_.size()); ++w) {
      if (current_[std::size_t(w)] != nullptr && (save == 0 || w == state_asker_)) to.push_back(w);
    }
  }
  for (const int worker : to) send_state_frames(worker, state, save);
}

void CollectiveDriver::ask_states() {
  std::set<int> asked;
  const std::lock_guard lock(mutex_);
  ++saves_;
  for (int w = 0; w < int(current_.size()); ++w) {
    if (current_[std::size_t(w)] != nullptr && group_.standing_of(w) != Standing::kJoining) {
      asked.insert(w);
    }
  }
  asked = inbox_.ask(saves_, std::move(asked));
  for (const int worker : asked) {
    send_message(*current_[std::size_t(worker)], {MessageType::kAskState, {}, saves_});
  }
}

// Sums in the middle of a step, for --sync-batch-norm: batch norm needs the sums of n, x and x²
// over all parts of a batch in the forward pass, and two more in the backward pass.
//
// The executor hands the store's exchange() to kernels (KernelCall::exchange), and a batch norm
// kernel calls add_up(sums) on it. The rest of the graph, plan and executor does not know of these
// sums. All parts make the same calls in the same order. Towers add up behind a barrier
// (TowerSums). Members of an all-reduce send each other their numbers (ExchangedSums), tagged with
// the attempt at the step.
//
// If the members change while a member waits for the sums or for the commit of the step, that
// member throws RepeatStep. The executor then makes the step again, from begin_step on, with the
// same inputs. For this the group forgets a step that was begun but not committed (repeats_steps).
// In a job without such sums, the group instead reduces the kept contributions again.

// True when the members have changed, and nobody commits the step that this worker has begun.
bool CollectiveDriver::must_repeat() const {
  return options_.sync_batch_norm && group_.begun_by(options_.task.index) == nullptr &&
         group_.commits() == begun_commits_ && group_.takes() == begun_takes_;
}

void CollectiveDriver::add_up(std::span<double> sums) {
  std::vector<std::int32_t> members;
  FrameHeader header{.type = std::uint16_t(MessageType::kExchangedSums)};
  const auto bytes = std::as_bytes(sums);
  header.payload_bytes = std::uint32_t(bytes.size());
  {
    const std::lock_guard lock(mutex_);
    if (must_repeat()) throw RepeatStep();
    members = group_.members();
    header.step = begun_tag_;
    header.id = exchanged_.give(begun_tag_, sums);
  }
  for (const std::int32_t member : members) {
    if (member != options_.task.index) send_copy(member, header, bytes);
  }
  enum class State { kWaits, kWhole, kRepeats, kOver } state = State::kWaits;
  const auto ready = [&] {
    const std::lock_guard lock(mutex_);
    state = must_repeat()                    ? State::kRepeats
            : exchanged_.whole(members)      ? State::kWhole
            : group_.epoch() != begun_epoch_ ? State::kOver
                                             : State::kWaits;
    return state != State::kWaits;
  };
  wait_in_step(std::cref(ready));
  if (state == State::kRepeats) throw RepeatStep();
  if (state == State::kOver) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("[all-reduce] {}: a worker was lost whose sums a step lacks that was "
                            "committed",
                            options_.task.str()));
  }
  const std::lock_guard lock(mutex_);
  exchanged_.sum(members, sums);
}

void CollectiveDriver::take_sums(int worker, const FrameHeader& header,
                                 std::span<const std::byte> payload) {
  if (payload.size() % sizeof(double) != 0) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] sums of {} bytes", payload.size()));
  }
  std::vector<double> numbers(payload.size() / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), payload.data(), payload.size());
  {
    const std::lock_guard lock(mutex_);
    exchanged_.take(worker, header.step, header.id, numbers);
  }
  wakeup_.notify();
}

// These functions depend on the engine that reduces, or end the job.

namespace {

// All workers find a bad sum at about the same time. Within this time, the worker whose
// contribution was bad tells the others.
constexpr Duration kBlameWithin = std::chrono::seconds(10);

}  // namespace

std::unique_ptr<Collectives> CollectiveDriver::make_collectives() {
  const int worker = options_.task.index, workers = int(options_.spec.workers.size());
  if (!collectives_kind(options_.collectives).over_links) {
    const MpiCalls& calls = mpi_calls();
    if (!calls.started()) {
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("--collectives mpi: mpirun has not started {}", options_.task.str()));
    }
    return std::make_unique<MpiCollectives>(variables_.specs(), layout_, worker, workers, calls,
                                            *this);
  }
  auto over_links =
      std::make_unique<LinkCollectives>(variables_.specs(), layout_, worker, workers, *this, *this);
  over_links_ = over_links.get();
  return over_links;
}

// Returns a fingerprint of what must be equal on all workers, so that they reduce alike: the
// buckets, the engine, and whether batch norm is synchronised.
std::uint64_t CollectiveDriver::fingerprint_of_step(const std::vector<Bucket>& buckets) const {
  const std::uint64_t engine = over_links_ == nullptr ? 2 : 0;
  return paceline::fingerprint_of(buckets) ^ std::uint64_t(options_.sync_batch_norm) ^ engine;
}

// Needs the lock.
void CollectiveDriver::tell_end(const Error& why) {
  for (const CollectiveConnection* peer : current_) {
    if (peer != nullptr) send_message(*peer, {MessageType::kRefuse, std::string(why.what())});
  }
  fail(why);
}

void CollectiveDriver::end_job(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    tell_end(why);
  }
  throw why;
}

void CollectiveDriver::wait_job_end(const std::string& otherwise) {
  wakeup_.wait(*link_, Deadline::after(kBlameWithin), [&] { return shown_.failed.load(); });
  check();
  throw Error(ErrorCode::kFailedPrecondition, otherwise);
}

// Tells the other workers which worker was lost. They must hear this before they notice that this
// worker ends, too.
void CollectiveDriver::lose_member(int worker, const Error& why) {
  if (collectives_->survives_losses() || leaving_ || shown_.failed) return;
  if (group_.standing_of(worker) == Standing::kRetired) return;
  tell_end(
      {ErrorCode::kUnavailable,
       fmt::format("{} is lost: {}; with --collectives {} the job ends with any of its workers",
                   text_of(worker), why.what(), options_.collectives)});
}

// The records that an all-reduce shares out, as a pipeline asks for them.

RecordSet CollectiveDriver::unused_records() const {
  const std::lock_guard lock(mutex_);
  return group_.records().unused();
}

void CollectiveDriver::begin_records() {
  const std::lock_guard lock(mutex_);
  group_.records().begin();
}

RecordRange CollectiveDriver::take_records(std::int64_t limit, std::int64_t most) {
  const std::lock_guard lock(mutex_);
  return group_.records().take(limit, most);
}

bool CollectiveDriver::records_over(std::int64_t limit) {
  const std::lock_guard lock(mutex_);
  return group_.training_ended() || group_.records().over(limit);
}

bool CollectiveDriver::records_revoked() {
  const std::lock_guard lock(mutex_);
  return group_.records().revoked();
}

void CollectiveDriver::check_job() {
  check();
  if (options_.check_interrupt) options_.check_interrupt();
}

}  // namespace paceline
