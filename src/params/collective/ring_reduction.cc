// The ring: a segment's sum begins behind its owner, goes around and is whole at its owner, and
// goes around once more to all others.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/copy_bytes.h"
#include "params/collective/link_collectives.h"
#include "params/weighted_sum.h"
#include "params/wire/message.h"

namespace paceline {
namespace {

// The numbers of a frame: summing them takes some ten microseconds, and they stay in a cache.
constexpr std::size_t kRingChunk = 64 * 1024;
// Segments begin where cache lines do.
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

// Throws unless the numbers are all of one segment.
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

// This worker has contributed: it begins the segment of the worker before it, and adds to what has
// arrived meanwhile.
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

}  // namespace paceline
