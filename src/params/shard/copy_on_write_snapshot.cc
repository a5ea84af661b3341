// Why a shard is not simply copied or forked: a copy of mlp's 226 MB between two steps would stop
// training for all workers at once, and fork() would not copy the values, which lie in shared
// memory.
#include "params/shard/copy_on_write_snapshot.h"

#include <algorithm>
#include <cstring>

#include "paceline/error.h"
#include "params/shard/copy_past_caches.h"

namespace paceline {
namespace {

// The size of a region in bytes: as many as a ShardPiece locks at a time.
constexpr std::size_t kMomentRegion = std::size_t{256} << 10;

}  // namespace

CopyOnWriteSnapshot::CopyOnWriteSnapshot(std::vector<std::span<const std::byte>> arrays)
    : arrays_(std::move(arrays)),
      regions_((arrays_.front().size() + kMomentRegion - 1) / kMomentRegion),
      taken_(regions_.size()) {}

void CopyOnWriteSnapshot::make_room() {
  if (!kept_.empty()) return;
  // If an allocation throws, kept_ stays empty.
  std::vector<Buffer> all;
  for (const std::span<const std::byte> array : arrays_) all.emplace_back(array.size());
  kept_ = std::move(all);
}

void CopyOnWriteSnapshot::mark(std::int64_t count) {
  make_room();
  count_ = count;
  for (std::atomic<bool>& taken : taken_) taken.store(false, std::memory_order_relaxed);
  marked_.store(true, std::memory_order_release);
}

void CopyOnWriteSnapshot::keep(std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  for (std::size_t region = begin / kMomentRegion; region <= (end - 1) / kMomentRegion; ++region) {
    if (!taken_[region].load(std::memory_order_acquire)) keep_region(region);
  }
}

// If the region was not copied since the mark, nobody has changed any of it since then: a thread
// that wants to change the region calls this function first, and waits until the region is copied.
void CopyOnWriteSnapshot::keep_region(std::size_t region) {
  const std::lock_guard lock(regions_[region]);
  if (taken_[region].load(std::memory_order_relaxed)) return;
  const std::size_t begin = region * kMomentRegion;
  const std::size_t bytes = std::min(kMomentRegion, arrays_.front().size() - begin);
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    copy_past_caches(arrays_[i].subspan(begin, bytes), kept_[i].span().subspan(begin, bytes));
  }
  taken_[region].store(true, std::memory_order_release);
}

std::span<const std::byte> CopyOnWriteSnapshot::read(std::size_t array, std::size_t offset,
                                                     std::size_t bytes) {
  if (!marked_.load(std::memory_order_acquire)) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] what is to be saved was not marked");
  }
  keep(offset, offset + bytes);
  return kept_[array].span().subspan(offset, bytes);
}

}  // namespace paceline
