// Takes records through the stages of a pipeline. A thread claims some records, takes each through
// all stages, and writes it into its slot of a batch. Records that may be handed on as they are
// finished get their slot only then.
//
// A thread claims some 200 µs of work at a time, so that the lock costs nothing, and there are no
// queues between the stages.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/cores.h"
#include "data/data_position.h"
#include "data/pipeline_plan.h"
#include "data/thread_tuner.h"
#include "data/ticket_stream.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {

// Takes records through the stages of a pipeline.

/// Records that cannot be read. Any number of threads may use it.
class BadRecords {
 public:
  explicit BadRecords(const PipelinePlan& plan) : plan_(plan) {}
  bool contains(std::int64_t index) const;
  /// Counts a bad record once, and passes `why` to PipelinePlan::on_bad. Throws kDataLoss if there
  /// are too many.
  void add(std::int64_t index, const std::string& why);
  std::int64_t count() const { return count_; }

 private:
  const PipelinePlan& plan_;
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::string> why_;  // by index
  std::atomic<std::int64_t> count_ = 0;
};

/// What is counted for a stage: how many records went through it, and how long they took.
struct StageTimes {
  std::int64_t records = 0;
  Duration spent{};
};

/// Makes examples. Belongs to one thread.
class ExampleMaker {
 public:
  ExampleMaker(const PipelinePlan& plan, BadRecords& bad, const Clock& clock)
      : plan_(plan), bad_(bad), clock_(clock), times_(plan.stages.size() + 2) {}

  /// Reads the record and takes it through all stages but the last. If the record is bad, does this
  /// with the source's next good one, and returns false.
  bool prepare(const Ticket& ticket);
  /// Runs the last stage, which writes the values of the prepared example.
  void write(std::span<float> values);
  std::int32_t label() const { return example_.label; }
  /// Adds the times of reading and of each stage to `to`, and sets them to zero.
  void hand_over_times(std::vector<StageTimes>& to);

 private:
  void make(std::int64_t index);
  std::size_t find_cached();
  void count(std::size_t stage, TimePoint since);

  const PipelinePlan& plan_;
  BadRecords& bad_;
  const Clock& clock_;
  Example example_;
  std::vector<StageTimes> times_;
};

bool BadRecords::contains(std::int64_t index) const {
  if (count_ == 0) return false;
  const std::lock_guard lock(mutex_);
  return why_.contains(index);
}

void BadRecords::add(std::int64_t index, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!why_.emplace(index, why).second) return;
    ++count_;
    if (count_ > plan_.max_bad) {
      throw Error(ErrorCode::kDataLoss,
                  plan_.max_bad == 0
                      ? fmt::format("{} (Pipeline::max_bad, or --max-bad of `paceline train`, "
                                    "leaves out bad records)",
                                    why)
                      : fmt::format("{} bad records, and only {} may be left out; the last: {}",
                                    count_.load(), plan_.max_bad, why));
    }
  }
  if (plan_.on_bad) plan_.on_bad(why);
}

bool ExampleMaker::prepare(const Ticket& ticket) {
  example_.epoch = ticket.epoch;
  example_.place = ticket.record.place;
  const std::int64_t records = plan_.records();
  for (std::int64_t i = 0; i < records; ++i) {
    const std::int64_t index = (ticket.record.index + i) % records;
    if (bad_.contains(index)) continue;
    try {
      make(index);
      return i == 0;
    } catch (const Error& error) {
      constexpr ErrorCode kBad[] = {ErrorCode::kDataLoss, ErrorCode::kNotFound,
                                    ErrorCode::kUnavailable};
      if (std::ranges::find(kBad, error.code()) == std::end(kBad)) {
        throw Error(error.code(), fmt::format("{}: {}", plan_.source->name(index), error.what()));
      }
      bad_.add(index, error.what());
    }
  }
  throw Error(ErrorCode::kDataLoss, "all records of the data are bad");
}

// Returns the index of the stage behind the last cache that holds the record; 0 if none does.
std::size_t ExampleMaker::find_cached() {
  for (std::size_t stage = plan_.stages.size(); stage > 0; --stage) {
    const RecordCache* const cache = plan_.stages[stage - 1].cache.get();
    if (cache != nullptr && cache->find(example_)) return stage;
  }
  return 0;
}

void ExampleMaker::make(std::int64_t index) {
  example_.index = index;
  TimePoint begun = clock_.now();
  std::size_t stage = find_cached();
  if (stage == 0) {
    plan_.source->read(index, example_);
    count(0, std::exchange(begun, clock_.now()));
  } else {
    count(stage, std::exchange(begun, clock_.now()));
  }
  for (; stage < plan_.stages.size(); ++stage) {
    const PipelinePlan::Stage& each = plan_.stages[stage];
    if (each.cache != nullptr) {
      each.cache->keep(example_);
    } else {
      each.function(example_);
    }
    count(stage + 1, std::exchange(begun, clock_.now()));
  }
}

void ExampleMaker::write(std::span<float> values) {
  const TimePoint begun = clock_.now();
  plan_.into(example_, values);
  count(times_.size() - 1, begun);
}

void ExampleMaker::count(std::size_t stage, TimePoint since) {
  ++times_[stage].records;
  times_[stage].spent += clock_.now() - since;
}

void ExampleMaker::hand_over_times(std::vector<StageTimes>& to) {
  for (std::size_t stage = 0; stage < times_.size(); ++stage) {
    const StageTimes times = std::exchange(times_[stage], {});
    to[stage].records += times.records;
    to[stage].spent += times.spent;
  }
}

// The batches that a pipeline is making, in the order in which they will be used.

/// A batch in work. Its memory is used again for later batches.
struct BatchInWork {
  InputBatch batch;
  std::vector<std::int64_t> ordinals;  // of the records in its slots
  std::int64_t claimed = 0, done = 0;  // slots
  bool closed = false;                 // no more slots are claimed
  // The error in slot `error_slot`, which is the first slot with an error.
  std::exception_ptr error;
  std::int64_t error_slot = 0;

  bool ready() const { return closed && done == claimed; }
  void fail(std::int64_t slot, std::exception_ptr why);
};

/// The batches in work. Has no locks. Slots are claimed in order, across batches.
class BatchRing {
 public:
  /// Throws kInvalidArgument for a pipeline without batches, or whose values have no shape.
  explicit BatchRing(const Pipeline& pipeline);

  /// Slots that can still be claimed.
  std::int64_t free_slots() const;
  /// Returns a batch with a free slot; null if there is none.
  BatchInWork* with_free_slot();
  /// Claims a slot of that batch for a record, and returns it.
  std::int64_t claim(BatchInWork& in_work, std::int64_t ordinal);
  /// Closes the ring: no more slots are claimed, and the last batch may stay shorter.
  void close();
  /// True if the next batch in turn is ready.
  bool front_is_ready() const { return !in_work_.empty() && in_work_.front()->ready(); }
  /// True when there will be no more batches.
  bool over() const { return closed_ && in_work_.empty(); }
  std::int64_t ready_batches() const;
  /// Returns the next batch in turn, which must be ready. It stays valid until give_back().
  BatchInWork& take();
  /// Gives the taken batch back, so that its memory is filled again.
  void give_back();

 private:
  const std::int64_t batch_;
  bool closed_ = false;
  std::vector<std::unique_ptr<BatchInWork>> all_;
  std::deque<BatchInWork*> free_, in_work_;
  BatchInWork* taken_ = nullptr;
};

void BatchInWork::fail(std::int64_t slot, std::exception_ptr why) {
  if (error && error_slot < slot) return;
  error = std::move(why);
  error_slot = slot;
}

BatchRing::BatchRing(const Pipeline& pipeline) : batch_(pipeline.plan()->batch) {
  const Shape shape = pipeline.shape(), slots{batch_};
  for (int i = 0; i <= pipeline.plan()->prefetch; ++i) {
    all_.push_back(std::make_unique<BatchInWork>());
    all_.back()->batch = {.values = Tensor(DType::kFloat32, shape),
                          .labels = Tensor(DType::kInt32, slots),
                          .weights = Tensor(DType::kFloat32, slots)};
    free_.push_back(all_.back().get());
  }
}

std::int64_t BatchRing::free_slots() const {
  const bool open = !in_work_.empty() && !in_work_.back()->closed;
  return std::int64_t(free_.size()) * batch_ + (open ? batch_ - in_work_.back()->claimed : 0);
}

BatchInWork* BatchRing::with_free_slot() {
  if (!in_work_.empty() && !in_work_.back()->closed) return in_work_.back();
  if (free_.empty()) return nullptr;
  BatchInWork* const next = free_.front();
  free_.pop_front();
  next->ordinals.clear();
  next->claimed = next->done = 0;
  next->closed = false;
  next->error = nullptr;
  next->batch.records = 0;
  in_work_.push_back(next);
  return next;
}

std::int64_t BatchRing::claim(BatchInWork& in_work, std::int64_t ordinal) {
  in_work.ordinals.push_back(ordinal);
  const std::int64_t slot = in_work.claimed++;
  in_work.closed = in_work.claimed == batch_;
  return slot;
}

void BatchRing::close() {
  closed_ = true;
  if (in_work_.empty() || in_work_.back()->closed) return;
  in_work_.back()->closed = true;
  if (in_work_.back()->claimed > 0) return;
  free_.push_back(in_work_.back());
  in_work_.pop_back();
}

std::int64_t BatchRing::ready_batches() const {
  return std::ranges::count_if(in_work_, [](const BatchInWork* each) { return each->ready(); });
}

BatchInWork& BatchRing::take() {
  taken_ = in_work_.front();
  in_work_.pop_front();
  return *taken_;
}

void BatchRing::give_back() {
  if (taken_ != nullptr) free_.push_back(std::exchange(taken_, nullptr));
}

namespace {

// A thread claims this much work at a time, so that the time for the lock does not matter.
constexpr Duration kWorkOfClaim = std::chrono::microseconds(200);
constexpr std::int64_t kBatchesOfMeasurement = 8;

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::vector<std::string> stage_names(const PipelinePlan& plan) {
  std::vector<std::string> names = {"read"};
  for (const PipelinePlan::Stage& stage : plan.stages) names.push_back(stage.name);
  names.push_back(plan.into_name);
  return names;
}

StageReport stage_report(const std::string& name, const StageTimes& times) {
  StageReport stage = {.name = name, .records = times.records, .seconds = in_seconds(times.spent)};
  if (stage.seconds > 0) stage.records_per_s = double(stage.records) / stage.seconds;
  return stage;
}

}  // namespace

class PipelineReader::Impl {
 public:
  Impl(const Pipeline& pipeline, const TaskPosition& position, std::string name);
  Impl(const Pipeline& pipeline, std::shared_ptr<RecordBlocks> blocks, std::string name);
  ~Impl();

  const InputBatch* next();
  void tell(TaskPosition& position) const;
  bool revoked() const { return blocks_ && blocks_->revoked(); }
  InputReport report() const;

 private:
  /// The work that a thread claims next.
  struct Claim {
    std::vector<Ticket> tickets;
    BatchInWork* to = nullptr;  // null: each record gets its slot once it is made
    std::int64_t slot = 0;      // of the first ticket
  };
  void start_threads();
  void work(int thread);
  bool can_claim();
  void wait_for_batch(std::unique_lock<std::mutex>& lock);
  void begin_blocks();
  bool claim(Claim& claim);
  BatchInWork& fill(const Claim& claim, ExampleMaker& maker);
  BatchInWork& fill_when_made(const Ticket& ticket, ExampleMaker& maker);
  void write(BatchInWork& to, std::int64_t slot, bool good, ExampleMaker& maker);
  void fail(BatchInWork& to, std::int64_t slot);
  void close_if_over();
  BatchInWork* take(TimePoint asked);
  void measure(Duration own);
  void use(BatchInWork& taken);

  const std::shared_ptr<const PipelinePlan> plan_;
  const std::string name_;
  const std::int64_t values_;  // of an example
  const std::int64_t size_;    // records of an epoch
  const RealClock clock_;
  BadRecords bad_{*plan_};

  const std::shared_ptr<RecordBlocks> blocks_;  // null: no job shares out the records
  std::int64_t taken_ = 0;                      // records of the blocks, in batches that were used

  mutable std::mutex mutex_;
  std::condition_variable work_changed_, batch_ready_;
  DataPlace place_;  // after the last batch that was used
  TicketStream tickets_;
  BatchRing ring_;
  ThreadTuner tuner_;
  bool ended_ = false, exhausted_ = false;
  std::int64_t without_slot_ = 0;  // claimed records that have no slot yet
  std::int64_t claim_size_ = 1;
  StageTimes order_times_;         // of deciding which record is next
  std::vector<StageTimes> times_;  // the times of reading, of each stage, and of the last stage
  // Totals over the batches that were used.
  std::int64_t records_ = 0, batches_ = 0, ready_seen_ = 0;
  std::optional<TimePoint> first_asked_, left_;
  Duration waited_{};
  // Measured since the number of threads was last decided.
  Duration work_{}, own_{};
  std::int64_t records_measured_ = 0, batches_measured_ = 0;
  std::vector<std::thread> threads_;
};

PipelineReader::Impl::Impl(const Pipeline& pipeline, const TaskPosition& position, std::string name)
    : plan_(pipeline.plan()),
      name_(std::move(name)),
      values_(plan_->shape.elements()),
      size_(pipeline.examples()),
      place_(data_place(position, name_, size_)),
      tickets_(RecordOrder(plan_->order), plan_->epochs, place_),
      ring_(pipeline),
      tuner_(plan_->threads > 0 ? plan_->threads : usable_cores()),
      times_(plan_->stages.size() + 2) {
  start_threads();
}

PipelineReader::Impl::Impl(const Pipeline& pipeline, std::shared_ptr<RecordBlocks> blocks,
                           std::string name)
    : plan_(pipeline.plan()),
      name_(std::move(name)),
      values_(plan_->shape.elements()),
      size_(pipeline.examples()),
      blocks_(std::move(blocks)),
      tickets_(RecordOrder(plan_->order), blocks_),
      ring_(pipeline),
      tuner_(plan_->threads > 0 ? plan_->threads : usable_cores()),
      times_(plan_->stages.size() + 2) {
  if (plan_->order.parts > 1 || plan_->as_finished) {
    throw Error(ErrorCode::kInvalidArgument,
                "[pipeline] records are shared out in their order: without shard(), and without a "
                "stage that hands them on as they are finished");
  }
  begin_blocks();
  start_threads();
}

void PipelineReader::Impl::begin_blocks() {
  constexpr std::int64_t kBlocksAhead = 1, kForEver = std::int64_t{1} << 62;
  const std::int64_t limit = plan_->epochs ? *plan_->epochs * size_ : kForEver;
  taken_ =
      blocks_->begin({.records = plan_->batch, .blocks = kBlocksAhead, .limit = limit}, [this] {
        const std::lock_guard lock(mutex_);
        work_changed_.notify_all();
      });
}

void PipelineReader::Impl::start_threads() {
  try {
    for (int i = 0; i < tuner_.threads(); ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    if (!threads_.empty()) return;  // one thread is enough
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the pipeline cannot start a thread: {}", error.what()));
  }
}

PipelineReader::Impl::~Impl() {
  if (blocks_) blocks_->end();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  work_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PipelineReader::Impl::work(int thread) {
  ExampleMaker maker(*plan_, bad_, clock_);
  Claim next;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      work_changed_.wait(lock,
                         [&] { return ended_ || (thread < tuner_.threads() && can_claim()); });
      if (ended_) return;
      if (!claim(next)) continue;
    }
    const TimePoint begun = clock_.now();
    BatchInWork& filled =
        next.to != nullptr ? fill(next, maker) : fill_when_made(next.tickets.front(), maker);
    const std::lock_guard lock(mutex_);
    // Counts the times first, so that a reader of the batch finds them.
    maker.hand_over_times(times_);
    work_ += clock_.now() - begun;
    records_measured_ += std::int64_t(next.tickets.size());
    filled.done += std::int64_t(next.tickets.size());
    if (filled.ready()) batch_ready_.notify_all();
  }
}

bool PipelineReader::Impl::can_claim() {
  return !exhausted_ && ring_.free_slots() > without_slot_ && tickets_.ready();
}

// Claims the next records and their slots. Returns false if there was no record left.
bool PipelineReader::Impl::claim(Claim& claim) {
  const TimePoint begun = clock_.now();
  claim.tickets.clear();
  claim.to = plan_->as_finished ? nullptr : ring_.with_free_slot();
  const std::int64_t most =
      claim.to == nullptr ? 1 : std::min(claim_size_, plan_->batch - claim.to->claimed);
  while (std::int64_t(claim.tickets.size()) < most) {
    if (!claim.tickets.empty() && !tickets_.ready()) break;  // the next block is on its way
    const std::optional<Ticket> ticket = tickets_.next();
    exhausted_ = !ticket;
    if (exhausted_) break;
    claim.tickets.push_back(*ticket);
    if (claim.to == nullptr) {
      ++without_slot_;
      continue;
    }
    const std::int64_t slot = ring_.claim(*claim.to, ticket->ordinal);
    if (claim.tickets.size() == 1) claim.slot = slot;
  }
  order_times_.records += std::int64_t(claim.tickets.size());
  order_times_.spent += clock_.now() - begun;
  close_if_over();
  return !claim.tickets.empty();
}

void PipelineReader::Impl::close_if_over() {
  if (!exhausted_ || without_slot_ > 0) return;
  ring_.close();
  batch_ready_.notify_all();
}

BatchInWork& PipelineReader::Impl::fill(const Claim& claim, ExampleMaker& maker) {
  std::int64_t slot = claim.slot;
  for (const Ticket& ticket : claim.tickets) {
    try {
      const bool good = maker.prepare(ticket);
      write(*claim.to, slot, good, maker);
    } catch (...) {
      fail(*claim.to, slot);
    }
    ++slot;
  }
  return *claim.to;
}

BatchInWork& PipelineReader::Impl::fill_when_made(const Ticket& ticket, ExampleMaker& maker) {
  bool good = false;
  std::exception_ptr error;
  try {
    good = maker.prepare(ticket);
  } catch (...) {
    error = std::current_exception();
  }
  BatchInWork* to = nullptr;
  std::int64_t slot = 0;
  {
    const std::lock_guard lock(mutex_);
    to = ring_.with_free_slot();  // can_claim() has kept a slot for the record
    slot = ring_.claim(*to, ticket.ordinal);
    --without_slot_;
    if (error) to->fail(slot, error);
    close_if_over();
  }
  try {
    if (!error) write(*to, slot, good, maker);
  } catch (...) {
    fail(*to, slot);
  }
  return *to;
}

void PipelineReader::Impl::write(BatchInWork& to, std::int64_t slot, bool good,
                                 ExampleMaker& maker) {
  const auto at = std::size_t(slot);
  maker.write(
      to.batch.values.data<float>().subspan(at * std::size_t(values_), std::size_t(values_)));
  to.batch.labels.data<std::int32_t>()[at] = maker.label();
  to.batch.weights.data<float>()[at] = good ? 1.0f : 0.0f;
}

void PipelineReader::Impl::fail(BatchInWork& to, std::int64_t slot) {
  const std::lock_guard lock(mutex_);
  to.fail(slot, std::current_exception());
}

// Looks at the job while it waits: if the job ends meanwhile, the batch may never be ready.
void PipelineReader::Impl::wait_for_batch(std::unique_lock<std::mutex>& lock) {
  constexpr Duration kLookEvery = std::chrono::milliseconds(250);
  const auto come = [&] { return ring_.front_is_ready() || ring_.over(); };
  if (!blocks_) return batch_ready_.wait(lock, come);
  while (!batch_ready_.wait_for(lock, kLookEvery, come)) {
    lock.unlock();
    blocks_->check_wait();
    lock.lock();
    work_changed_.notify_all();
  }
}

// Returns null after the last batch.
BatchInWork* PipelineReader::Impl::take(TimePoint asked) {
  std::unique_lock lock(mutex_);
  if (!first_asked_) first_asked_ = asked;
  ring_.give_back();
  if (left_) measure(asked - *left_);
  work_changed_.notify_all();
  ready_seen_ += std::min<std::int64_t>(ring_.ready_batches(), plan_->prefetch);
  wait_for_batch(lock);
  left_ = clock_.now();
  waited_ += *left_ - asked;
  if (ring_.over()) return nullptr;
  BatchInWork& taken = ring_.take();
  const bool whole = taken.claimed == plan_->batch || plan_->last != LastBatch::kDrop;
  return whole ? &taken : nullptr;
}

// Decides how many threads work, and how much each claims at a time.
void PipelineReader::Impl::measure(Duration own) {
  own_ += own;
  if (++batches_measured_ < kBatchesOfMeasurement || records_measured_ == 0) return;
  const Duration of_record = work_ / records_measured_;
  claim_size_ = std::clamp<std::int64_t>(
      kWorkOfClaim / std::max<Duration>(of_record, std::chrono::nanoseconds(1)), 1,
      std::max<std::int64_t>(1, plan_->batch / (2 * std::int64_t(threads_.size()))));
  tuner_.update(in_seconds(of_record) * double(plan_->batch),
                in_seconds(own_) / double(batches_measured_));
  work_ = own_ = {};
  records_measured_ = batches_measured_ = 0;
}

void PipelineReader::Impl::use(BatchInWork& taken) {
  if (taken.error) std::rethrow_exception(taken.error);
  InputBatch& batch = taken.batch;
  const auto values = batch.values.data<float>();
  const auto labels = batch.labels.data<std::int32_t>();
  const auto weights = batch.weights.data<float>();
  std::fill(values.begin() + taken.claimed * values_, values.end(), 0.0f);
  std::fill(labels.begin() + taken.claimed, labels.end(), 0);
  std::fill(weights.begin() + taken.claimed, weights.end(), 0.0f);
  batch.records = std::ranges::count(weights, 1.0f);
  batch.rows = plan_->last == LastBatch::kShort ? taken.claimed : plan_->batch;
  const std::lock_guard lock(mutex_);
  if (blocks_) {
    taken_ += std::int64_t(taken.ordinals.size());
    place_.next = std::max(place_.next, std::ranges::max(taken.ordinals) + 1);
  } else {
    for (const std::int64_t ordinal : taken.ordinals) place_.use(ordinal);
  }
  records_ += batch.records;
  ++batches_;
}

const InputBatch* PipelineReader::Impl::next() {
  BatchInWork* const taken = take(clock_.now());
  if (taken == nullptr) return nullptr;
  use(*taken);
  return &taken->batch;
}

void PipelineReader::Impl::tell(TaskPosition& position) const {
  tell_place(place_, name_, size_, position);
  if (blocks_) position.numbers[kTakenRecords] = taken_;
}

InputReport PipelineReader::Impl::report() const {
  const std::lock_guard lock(mutex_);
  InputReport report = {.records = records_,
                        .batches = batches_,
                        .bad = bad_.count(),
                        .threads = std::min(tuner_.threads(), int(threads_.size())),
                        .most_threads = int(threads_.size()),
                        .waited = in_seconds(waited_)};
  if (first_asked_) report.seconds = in_seconds(clock_.now() - *first_asked_);
  report.stages.push_back(stage_report("order", order_times_));
  report.stages.back().fill = tickets_.pool_fill();
  const std::vector<std::string> names = stage_names(*plan_);
  for (std::size_t i = 0; i < names.size(); ++i) {
    StageReport stage = stage_report(names[i], times_[i]);
    const bool inner = i > 0 && i <= plan_->stages.size();
    if (inner && plan_->stages[i - 1].cache) stage.fill = plan_->stages[i - 1].cache->fill();
    report.stages.push_back(std::move(stage));
  }
  StageReport ahead = {.name = "prefetch", .records = records_};
  if (batches_ > 0) ahead.fill = double(ready_seen_) / double(batches_ * plan_->prefetch);
  report.stages.push_back(std::move(ahead));
  return report;
}

PipelineReader::PipelineReader(const Pipeline& pipeline, const TaskPosition& position,
                               const std::string& name)
    : impl_(std::make_unique<Impl>(pipeline, position, name)) {}
PipelineReader::PipelineReader(const Pipeline& pipeline, std::shared_ptr<RecordBlocks> blocks,
                               const std::string& name)
    : impl_(std::make_unique<Impl>(pipeline, std::move(blocks), name)) {}
PipelineReader::~PipelineReader() = default;
bool PipelineReader::revoked() const { return impl_->revoked(); }
const InputBatch* PipelineReader::next() { return impl_->next(); }
void PipelineReader::tell(TaskPosition& position) const { impl_->tell(position); }
InputReport PipelineReader::report() const { return impl_->report(); }

}  // namespace paceline
