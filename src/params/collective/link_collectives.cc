#include "params/collective/link_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/copy_bytes.h"
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
    changed_.notify_all();
  }
}

void LinkCollectives::contribute(std::size_t bucket, std::size_t rows) {
  const std::lock_guard lock(mutex_);
  work_[bucket].contributed = true;
  work_[bucket].rows = rows;
  if (tag_ != 0 && group_) changed_.notify_all();
}

void LinkCollectives::rest() {
  Lock lock(mutex_);
  tag_ = 0;  // group_ stays, since this worker may yet commit a step that others have committed
  resting_ = true;
  lock.unlock();
  changed_.notify_all();
}

void LinkCollectives::run() {
  const FlushDenormals flush;
  Lock lock(mutex_);
  while (!stopped_) {
    try {
      if (resting_ && working_ == 0 && in_flight_ == 0) {
        notify_rested(lock);
      } else if (!work_on_one(lock)) {
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
  if (tag_ == 0 || !group_) return false;
  return std::ranges::any_of(order_, [&](std::size_t bucket) { return work_on(bucket, lock); });
}

// Does one piece of work for the bucket. Returns false when there is nothing to do.
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

// Tells the others that they can read this worker's contribution or, with the flag kSummed, its
// part of the sum.
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
    return changed_.notify_all();
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

// The reduction in a ring. The sum of a segment begins at the member after the segment's owner,
// goes around the ring and is whole when it reaches the owner. The owner then sends the sum around
// once more, to all others.

namespace {

// How many numbers a frame has. Summing them takes some ten microseconds, and they stay in a cache.
constexpr std::size_t kRingChunk = 64 * 1024;
// Segments begin at cache lines.
constexpr std::size_t kLineNumbers = 16;

}  // namespace

LinkCollectives::Chunk LinkCollectives::segment(std::size_t bucket, int number) const {
  const std::size_t lines = (buckets_[bucket].elements + kLineNumbers - 1) / kLineNumbers;
  const auto begin = [&](int k) {
    const std::size_t line = lines * std::size_t(k) / std::size_t(size());
    return std::min(line * kLineNumbers, buckets_[bucket].elements);
  };
  return {begin(number), begin(number + 1) - begin(number)};
}

// Returns the number of the segment in which the chunk lies. Throws unless all its numbers lie in
// one segment.
int LinkCollectives::segment_of(std::size_t bucket, Chunk chunk) const {
  for (int k = 0; k < size(); ++k) {
    const Chunk whole = segment(bucket, k);
    if (chunk.first >= whole.first && chunk.first + chunk.count <= whole.first + whole.count) {
      return k;
    }
  }
  throw Error(ErrorCode::kDataLoss,
              fmt::format("[all-reduce] {} numbers at {} are not of one segment", chunk.count,
                          chunk.first));
}

// Called once this worker has contributed. Begins the sum of the segment that belongs to the
// previous member of the ring, and adds its own numbers to the chunks that have already arrived.
void LinkCollectives::scatter(std::size_t bucket, Lock& lock) {
  const std::uint64_t tag = tag_;
  const std::vector<Chunk> early = std::exchange(work_[bucket].early, {});
  const Chunk own = segment(bucket, (group_->rank + size() - 1) % size());
  const float weight = group_->weights[std::size_t(group_->rank)];
  const float* const numbers = numbers_of(worker_, kContributions, bucket);
  auto* const sums = const_cast<float*>(numbers_of(worker_, kSums, bucket));
  for (std::size_t at = own.first; at < own.first + own.count; at += kRingChunk) {
    const Chunk chunk{at, std::min(kRingChunk, own.first + own.count - at)};
    unlocked(lock, [&] { scale(weight, {numbers + at, chunk.count}, sums + at); });
    if (tag_ != tag) return;
    send_chunks(bucket, chunk, 0, lock);
    if (tag_ != tag) return;
  }
  for (const Chunk chunk : early) {
    add_and_pass_on(bucket, chunk, sums + chunk.first, lock);
    if (tag_ != tag) return;
  }
}

// Sends sums to the next member.
void LinkCollectives::send_chunks(std::size_t bucket, Chunk chunk, std::uint16_t flags,
                                  Lock& lock) {
  const int next = member_at((group_->rank + 1) % size());
  const std::span<const float> numbers(numbers_of(worker_, kSums, bucket) + chunk.first,
                                       chunk.count);
  const auto payload = std::as_bytes(numbers);
  const FrameHeader header{.payload_bytes = std::uint32_t(payload.size()),
                           .type = std::uint16_t(MessageType::kPartialSum),
                           .flags = flags,
                           .id = std::uint32_t(bucket),
                           .offset = chunk.first * sizeof(float),
                           .step = tag_};
  ++in_flight_;
  unlocked(lock, [&] { sender_.send(next, header, payload, &LinkCollectives::sent, this); });
}

void LinkCollectives::sent(void* self) {
  LinkCollectives& collectives = *static_cast<LinkCollectives*>(self);
  const std::lock_guard lock(collectives.mutex_);
  if (--collectives.in_flight_ == 0 && collectives.resting_) collectives.changed_.notify_all();
}

void LinkCollectives::take_partial(int worker, const FrameHeader& header,
                                   std::span<const std::byte> payload, Lock& lock) {
  const std::size_t bytes = buckets_[header.id].elements * sizeof(float);
  if (payload.empty() || payload.size() % sizeof(float) != 0 ||
      header.offset % sizeof(float) != 0 || header.offset > bytes ||
      payload.size() > bytes - header.offset) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] partial_sum of {} bytes at {}",
                                                  payload.size(), header.offset));
  }
  const Chunk chunk{header.offset / sizeof(float), payload.size() / sizeof(float)};
  const auto* const numbers = reinterpret_cast<const float*>(payload.data());
  Work& work = work_[header.id];
  if (group_ && member_at((group_->rank + size() - 1) % size()) != worker) {
    throw Error(ErrorCode::kDataLoss, "[all-reduce] partial_sum of no neighbour");
  }
  if ((header.flags & kFinal) != 0) {
    if (!group_ || !work.contributed) {
      throw Error(ErrorCode::kDataLoss, "[all-reduce] a sum is whole without this worker");
    }
    return take_final(header.id, chunk, numbers, lock);
  }
  if (group_ && work.begun) return add_and_pass_on(header.id, chunk, numbers, lock);
  copy_bytes(const_cast<float*>(numbers_of(worker_, kSums, header.id)) + chunk.first, numbers,
             payload.size());
  work.early.push_back(chunk);
}

void LinkCollectives::add_and_pass_on(std::size_t bucket, Chunk chunk, const float* sum,
                                      Lock& lock) {
  const int owner = segment_of(bucket, chunk);
  const bool final = owner == group_->rank;
  const std::uint64_t tag = tag_;
  const float weight = group_->weights[std::size_t(group_->rank)];
  const float* const numbers = numbers_of(worker_, kContributions, bucket) + chunk.first;
  auto* const into = const_cast<float*>(numbers_of(worker_, kSums, bucket)) + chunk.first;
  unlocked(lock, [&] { add_scaled(sum, weight, {numbers, chunk.count}, into); });
  if (tag_ != tag) return;
  send_chunks(bucket, chunk, final ? kFinal : 0, lock);
  if (tag_ == tag && final) note_summed(bucket, chunk.count, lock);
}

void LinkCollectives::take_final(std::size_t bucket, Chunk chunk, const float* sum, Lock& lock) {
  const int owner = segment_of(bucket, chunk);
  const std::uint64_t tag = tag_;
  auto* const into = const_cast<float*>(numbers_of(worker_, kSums, bucket)) + chunk.first;
  unlocked(lock, [&] { copy_bytes(into, sum, chunk.count * sizeof(float)); });
  if (tag_ != tag) return;
  if ((group_->rank + 1) % size() != owner) send_chunks(bucket, chunk, kFinal, lock);
  if (tag_ == tag) note_summed(bucket, chunk.count, lock);
}

void LinkCollectives::note_summed(std::size_t bucket, std::size_t count, Lock& lock) {
  Work& work = work_[bucket];
  work.summed_numbers += count;
  if (work.summed_numbers == buckets_[bucket].elements) note_whole(bucket, lock);
}

// Rows of sparse variables: every member gets the rows of all others, and sums them in the order of
// the members.

// A frame has the ids of all its rows first, and then the rows. The header's offset is the number
// of these rows.
void LinkCollectives::send_rows(std::size_t bucket, Lock& lock) {
  const VariableId variable = buckets_[bucket].variables.front();
  const std::byte* const ids = contributions_->bytes().data() + layout_.ids_offset(variable);
  const std::byte* const rows = contributions_->bytes().data() + layout_.offset(variable);
  const std::size_t row_bytes = row_elements(bucket) * sizeof(float);
  const std::size_t count = work_[bucket].rows;
  const std::size_t at_once =
      std::max<std::size_t>(1, kChunkBytes / (row_bytes + sizeof(std::int32_t)));
  const std::vector<std::int32_t> members = group_->members;
  const std::uint64_t tag = tag_;
  unlocked(lock, [&] {
    std::size_t first = 0;
    do {
      const std::size_t some = std::min(at_once, count - first);
      const bool last = first + some == count;
      frame_.resize(some * (row_bytes + sizeof(std::int32_t)));
      copy_bytes(frame_.data(), ids + first * sizeof(std::int32_t), some * sizeof(std::int32_t));
      copy_bytes(frame_.data() + some * sizeof(std::int32_t), rows + first * row_bytes,
                 some * row_bytes);
      const FrameHeader header{.payload_bytes = std::uint32_t(frame_.size()),
                               .type = std::uint16_t(MessageType::kContributedRows),
                               .flags = last ? kLastRows : std::uint16_t{0},
                               .id = std::uint32_t(bucket),
                               .offset = some,
                               .step = tag};
      for (const std::int32_t member : members) {
        if (member != worker_) sender_.send_copy(member, header, frame_);
      }
      first += some;
    } while (first < count);
  });
}

void LinkCollectives::take_rows(int worker, const FrameHeader& header,
                                std::span<const std::byte> payload, Lock&) {
  const std::size_t row = row_elements(header.id);
  const VariableSpec& variable = variables_[std::size_t(buckets_[header.id].variables.front())];
  GatheredRows& gathered = work_[header.id].gathered[std::size_t(worker)];
  const std::size_t count = header.offset;
  const std::size_t each = sizeof(std::int32_t) + row * sizeof(float);
  if (gathered.whole || count > payload.size() || count * each != payload.size() ||
      gathered.ids.size() + count > std::size_t(variable.shape[0])) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] {} rows of {} in {} bytes", count,
                                                  variable.name, payload.size()));
  }
  const std::size_t before = gathered.ids.size();
  gathered.ids.resize(before + count);
  gathered.rows.resize((before + count) * row);
  copy_bytes(gathered.ids.data() + before, payload.data(), count * sizeof(std::int32_t));
  copy_bytes(gathered.rows.data() + before * row, payload.data() + count * sizeof(std::int32_t),
             count * row * sizeof(float));
  check_rows(header.id, std::span(gathered.ids).subspan(before));
  if ((header.flags & kLastRows) == 0) return;
  gathered.whole = true;
  work_[header.id].there[std::size_t(worker)] = true;
  changed_.notify_all();
}

void LinkCollectives::check_rows(std::size_t bucket, std::span<const std::int32_t> ids) const {
  const VariableSpec& variable = variables_[std::size_t(buckets_[bucket].variables.front())];
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < variable.shape[0]) continue;
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] row {} of {}", id, variable.name));
  }
}

// A peer may change its memory at any time, so the ids are copied before the check.
void LinkCollectives::read_ids(int worker, std::size_t bucket, std::size_t count) {
  const VariableId variable = buckets_[bucket].variables.front();
  if (count > std::size_t(variables_[std::size_t(variable)].shape[0])) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] in_place with {} rows", count));
  }
  GatheredRows& gathered = work_[bucket].gathered[std::size_t(worker)];
  gathered.ids.resize(count);
  const SharedMemory& memory = *shared_[std::size_t(worker)].memories[kContributions];
  copy_bytes(gathered.ids.data(), memory.bytes().data() + layout_.ids_offset(variable),
             count * sizeof(std::int32_t));
  check_rows(bucket, gathered.ids);
}

void LinkCollectives::sum_gathered(std::size_t bucket, Lock& lock) {
  const VariableId variable = buckets_[bucket].variables.front();
  Work& work = work_[bucket];
  std::vector<WeightedRows> members;
  for (int rank = 0; rank < size(); ++rank) {
    const int member = member_at(rank);
    WeightedRows rows{.weight = group_->weights[std::size_t(rank)], .ids = {}, .rows = nullptr};
    const GatheredRows& gathered = work.gathered[std::size_t(member)];
    if (member == worker_) {
      const std::byte* const ids = contributions_->bytes().data() + layout_.ids_offset(variable);
      rows.ids = {reinterpret_cast<const std::int32_t*>(ids), work.rows};
    } else {
      rows.ids = gathered.ids;
    }
    const bool lies_there = member == worker_ || group_->in_place;
    rows.rows = lies_there ? numbers_of(member, kContributions, bucket) : gathered.rows.data();
    members.push_back(rows);
  }
  const std::uint64_t tag = tag_;
  const std::size_t row = row_elements(bucket);
  unlocked(lock, [&] { sum_rows(members, row, work.ids, work.row_sums); });
  if (tag_ != tag) return;
  note_whole(bucket, lock);
}

}  // namespace paceline
