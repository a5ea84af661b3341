#include "params/collective/link_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/denormals.h"
#include "params/variable_arrays.h"
#include "params/weighted_sum.h"
#include "params/wire/message.h"

namespace paceline {

LinkCollectives::LinkCollectives(std::span<const VariableSpec> variables,
                                 const ContributionLayout& layout, int worker, int workers,
                                 PeerSender& sender, ReductionListener& listener)
    : variables_(variables),
      layout_(layout),
      worker_(worker),
      sender_(sender),
      listener_(listener),
      contributions_(SharedMemory::create(layout.bytes())),
      sums_(SharedMemory::create(layout.bytes())),
      shared_(std::size_t(workers)),
      thread_([this] { run(); }) {}

LinkCollectives::~LinkCollectives() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LinkCollectives::take_memory(int worker, std::uint32_t id,
                                  std::shared_ptr<const SharedMemory> memory) {
  if (id > kSums || memory->size() < layout_.bytes()) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] memory {} of {} bytes, not of {}",
                                                  id, memory->size(), layout_.bytes()));
  }
  const std::lock_guard lock(mutex_);
  shared_[std::size_t(worker)].memories[id] = std::move(memory);
}

void LinkCollectives::begin(std::shared_ptr<const std::vector<Bucket>> buckets) {
  const std::lock_guard lock(mutex_);
  tag_ = 0;
  group_.reset();
  bucket_list_ = std::move(buckets);
  buckets_ = *bucket_list_;
  work_.resize(buckets_.size());
  order_.clear();
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    order_.push_back(b);
    work_[b].contributed = false;
  }
  std::ranges::sort(order_, {}, [this](std::size_t b) { return buckets_[b].priority; });
}

void LinkCollectives::open(std::uint64_t tag) {
  const std::lock_guard lock(mutex_);
  tag_ = tag;
  group_.reset();
  resting_ = false;
  left_ = buckets_.size();
  for (Work& work : work_) {
    work.begun = work.reduced = work.whole = false;
    work.there.assign(shared_.size(), false);
    work.summed.assign(shared_.size(), false);
    work.summed_numbers = 0;
    work.early.clear();
    work.gathered.assign(shared_.size(), {});
  }
}

void LinkCollectives::start(const ReductionGroup& group) {
  {
    const std::lock_guard lock(mutex_);
    if (group.tag != tag_) return;
    group_ = group;
    mapped_ = shared_;
    wake_for_work();
  }
}

void LinkCollectives::contribute(std::size_t bucket, std::size_t rows) {
  const std::lock_guard lock(mutex_);
  work_[bucket].contributed = true;
  work_[bucket].rows = rows;
  if (tag_ != 0 && group_) wake_for_work();
}

void LinkCollectives::rest() {
  Lock lock(mutex_);
  tag_ = 0;  // the group stays: a step that others have committed is committed here, too
  resting_ = true;
  lock.unlock();
  changed_.notify_all();
}

// With the lock.
void LinkCollectives::wake_for_work() {
  if (!spinning_) changed_.notify_all();
}

void LinkCollectives::set_spinning(bool spinning) {
  const std::lock_guard lock(mutex_);
  spinning_ = spinning;
  wake_for_work();
}

bool LinkCollectives::help() {
  const FlushDenormals flush;
  Lock lock(mutex_);
  try {
    return work_on_one(lock);
  } catch (const Error& error) {
    fail(lock, error);
    return false;
  }
}

void LinkCollectives::run() {
  const FlushDenormals flush;
  Lock lock(mutex_);
  while (!stopped_) {
    try {
      if (resting_ && working_ == 0 && in_flight_ == 0) {
        notify_rested(lock);
      } else if (spinning_ || !work_on_one(lock)) {
        changed_.wait(lock);
      }
    } catch (const Error& error) {
      fail(lock, error);
    }
  }
}

void LinkCollectives::fail(Lock& lock, const Error& error) {
  tag_ = 0;
  lock.unlock();
  listener_.failed(error);
  lock.lock();
}

void LinkCollectives::notify_rested(Lock& lock) {
  resting_ = false;
  lock.unlock();
  listener_.rested();
  lock.lock();
}

bool LinkCollectives::work_on_one(Lock& lock) {
  if (tag_ == 0 || !group_ || at_work_) return false;
  struct AtWork {
    bool& at_work;
    explicit AtWork(bool& flag) : at_work(flag) { at_work = true; }
    ~AtWork() { at_work = false; }
  };
  const AtWork working(at_work_);
  return std::ranges::any_of(order_, [&](std::size_t bucket) { return work_on(bucket, lock); });
}

// Does a piece of work of the bucket, unless there is nothing to do.
bool LinkCollectives::work_on(std::size_t bucket, Lock& lock) {
  Work& work = work_[bucket];
  if (work.whole || !work.contributed) return false;
  const bool sparse = buckets_[bucket].sparse;
  if (!std::exchange(work.begun, true)) {
    if (size() == 1 && !sparse) {
      note_whole(bucket, lock);
    } else if (group_->in_place) {
      announce(bucket, 0, lock);
    } else if (sparse) {
      send_rows(bucket, lock);
    } else {
      scatter(bucket, lock);
    }
    return true;
  }
  if (work.reduced || (!sparse && !group_->in_place) || !all_members(work.there)) return false;
  work.reduced = true;
  if (sparse) {
    sum_gathered(bucket, lock);
  } else {
    sum_part(bucket, lock);
  }
  return true;
}

bool LinkCollectives::all_members(const std::vector<bool>& workers) const {
  return std::ranges::all_of(group_->members, [&](std::int32_t member) {
    return member == worker_ || workers[std::size_t(member)];
  });
}

void LinkCollectives::note_whole(std::size_t bucket, Lock& lock) {
  if (std::exchange(work_[bucket].whole, true)) return;
  if (--left_ > 0) return;
  const std::uint64_t tag = tag_;
  lock.unlock();
  listener_.reduced(tag);
  lock.lock();
}

std::size_t LinkCollectives::row_elements(std::size_t bucket) const {
  const VariableSpec& variable = variables_[std::size_t(buckets_[bucket].variables.front())];
  return std::size_t(paceline::row_elements(variable));
}

void LinkCollectives::arrived(int worker, const FrameHeader& header,
                              std::span<const std::byte> payload) {
  Lock lock(mutex_);
  if (tag_ == 0 || header.step != tag_) return;
  const MessageType type{header.type};
  const bool rows = type == MessageType::kContributedRows;
  if (header.id >= buckets_.size() ||
      (type != MessageType::kInPlace && buckets_[header.id].sparse != rows)) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[all-reduce] {} is about bucket {}", name_of(type), header.id));
  }
  if (rows) return take_rows(worker, header, payload, lock);
  if (type == MessageType::kInPlace) return take_in_place(worker, header, lock);
  take_partial(worker, header, payload, lock);
}

// Tells the others that this worker's contribution, or its part of the sum, can be read.
void LinkCollectives::announce(std::size_t bucket, std::uint16_t flags, Lock& lock) {
  FrameHeader header{.type = std::uint16_t(MessageType::kInPlace),
                     .flags = flags,
                     .id = std::uint32_t(bucket),
                     .offset = work_[bucket].rows,
                     .step = tag_};
  const std::vector<std::int32_t> members = group_->members;
  unlocked(lock, [&] {
    for (const std::int32_t member : members) {
      if (member != worker_) sender_.send_copy(member, header, {});
    }
  });
}

void LinkCollectives::take_in_place(int worker, const FrameHeader& header, Lock& lock) {
  Work& work = work_[header.id];
  const Shared& shared = shared_[std::size_t(worker)];
  if (shared.memories[0] == nullptr || shared.memories[1] == nullptr) {
    throw Error(ErrorCode::kDataLoss, "[all-reduce] in_place without shared memory");
  }
  if ((header.flags & kSummed) == 0) {
    if (buckets_[header.id].sparse) read_ids(worker, header.id, header.offset);
    work.there[std::size_t(worker)] = true;
    return wake_for_work();
  }
  work.summed[std::size_t(worker)] = true;
  if (group_ && work.summed[std::size_t(worker_)] && all_members(work.summed)) {
    note_whole(header.id, lock);
  }
}

const float* LinkCollectives::numbers_of(int worker, std::uint32_t memory,
                                         std::size_t bucket) const {
  const SharedMemory& own = memory == kSums ? *sums_ : *contributions_;
  const SharedMemory& shared =
      worker == worker_ ? own : *mapped_[std::size_t(worker)].memories[memory];
  return reinterpret_cast<const float*>(shared.bytes().data() + buckets_[bucket].offset);
}

void LinkCollectives::sum_part(std::size_t bucket, Lock& lock) {
  const Chunk part = segment(bucket, group_->rank);
  std::vector<const float*> inputs;
  for (const std::int32_t member : group_->members) {
    inputs.push_back(numbers_of(member, kContributions, bucket));
  }
  const std::vector<float> weights = group_->weights;
  const std::uint64_t tag = tag_;
  float* const sums = reinterpret_cast<float*>(sums_->bytes().data() + buckets_[bucket].offset);
  unlocked(lock, [&] {
    weighted_sum(weights, inputs, part.first, {sums + part.first, part.count});
  });
  if (tag_ != tag) return;
  announce(bucket, kSummed, lock);
  if (tag_ != tag) return;
  Work& work = work_[bucket];
  work.summed[std::size_t(worker_)] = true;
  if (all_members(work.summed)) note_whole(bucket, lock);
}

void LinkCollectives::sum_of(std::size_t bucket, std::vector<SumPart>& parts) const {
  const std::lock_guard lock(mutex_);
  parts.clear();
  const Bucket& what = buckets_[bucket];
  if (size() == 1 || !group_->in_place) {
    const std::uint32_t memory = size() == 1 ? kContributions : kSums;
    parts.push_back({0, {numbers_of(worker_, memory, bucket), what.elements}});
    return;
  }
  for (int rank = 0; rank < size(); ++rank) {
    const Chunk part = segment(bucket, rank);
    const float* const numbers = numbers_of(member_at(rank), kSums, bucket);
    parts.push_back({part.first, {numbers + part.first, part.count}});
  }
}

RowSums LinkCollectives::row_sums_of(std::size_t bucket) const {
  const std::lock_guard lock(mutex_);
  return {work_[bucket].ids, work_[bucket].row_sums};
}

}  // namespace paceline
