// Threads claim records, a few at a time, take each through all stages, and write it into its slot
// of a batch. Records that are handed on as they are finished get their slot only then. A thread
// claims some 200 µs of work at a time, so that the lock costs nothing, and there are no queues
// between the stages.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/cores.h"
#include "data/batch_ring.h"
#include "data/data_position.h"
#include "data/example_maker.h"
#include "data/thread_tuner.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// A thread claims so much work at a time that the lock costs nothing beside it.
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
  /// The next thing that a thread has to do.
  struct Claim {
    std::vector<Ticket> tickets;
    BatchInWork* to = nullptr;  // null: the slot is claimed when the record is made
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
  std::int64_t taken_ = 0;                      // of them, in batches that were used

  mutable std::mutex mutex_;
  std::condition_variable work_changed_, batch_ready_;
  DataPlace place_;  // after the last batch that was used
  TicketStream tickets_;
  BatchRing ring_;
  ThreadTuner tuner_;
  bool ended_ = false, exhausted_ = false;
  std::int64_t without_slot_ = 0;  // records under way that have none yet
  std::int64_t claim_size_ = 1;
  StageTimes order_times_;         // of deciding which record is next
  std::vector<StageTimes> times_;  // of reading, each stage and the last one
  // These count the batches that were used.
  std::int64_t records_ = 0, batches_ = 0, ready_seen_ = 0;
  std::optional<TimePoint> first_asked_, left_;
  Duration waited_{};
  // Since the number of threads was last decided.
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
    if (!threads_.empty()) return;  // one can do it
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
    maker.hand_over_times(times_);  // before the batch is, so that its reader finds them counted
    work_ += clock_.now() - begun;
    records_measured_ += std::int64_t(next.tickets.size());
    filled.done += std::int64_t(next.tickets.size());
    if (filled.ready()) batch_ready_.notify_all();
  }
}

bool PipelineReader::Impl::can_claim() {
  return !exhausted_ && ring_.free_slots() > without_slot_ && tickets_.ready();
}

// Returns false when there was no record left.
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
    to = ring_.with_free_slot();  // can_claim has kept one for it
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

// Records that others have may never come, if the job ends meanwhile.
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
  const bool whole = taken.claimed == plan_->batch || plan_->last == LastBatch::kPad;
  return whole ? &taken : nullptr;
}

// Decides how many threads work and how much each claims at a time.
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
