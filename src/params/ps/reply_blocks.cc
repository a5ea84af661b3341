#include "params/ps/reply_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::size_t kLeastBytes = 4096;

// Blocks of one kind have sizes below the same power of two, so the largest is at most twice as
// large as the smallest.
std::size_t memory_for(std::size_t bytes) { return bytes == 0 ? 0 : std::max(bytes, kLeastBytes); }
std::size_t kind_of(std::size_t memory) { return std::size_t(std::bit_width(memory)); }

}  // namespace

ReplyBlocks::~ReplyBlocks() = default;

ReplyBlocks::Lent ReplyBlocks::take(std::size_t bytes) {
  const std::size_t memory = memory_for(bytes);
  Lent lent = lend(bytes, memory, memory);
  if (lent->memory.size() < bytes) lent->memory = Buffer(memory);
  lent->data = lent->memory.data();
  return lent;
}

ReplyBlocks::Lent ReplyBlocks::take(Common common) {
  Lent lent = lend(common->bytes, memory_for(common->bytes), 0);
  lent->data = common->data;
  lent->common = std::move(common);
  return lent;
}

ReplyBlocks::Lent ReplyBlocks::lend(std::size_t bytes, std::size_t charged, std::size_t memory) {
  std::unique_ptr<Block> block = take_free(charged, memory);
  block->bytes = bytes;
  block->owner = shared_from_this();
  // From here on the lent block gives itself back, even if something throws.
  return Lent(block.release());
}

std::unique_ptr<ReplyBlocks::Block> ReplyBlocks::take_free(std::size_t charged,
                                                           std::size_t memory) {
  const std::size_t kind = kind_of(memory);
  const std::lock_guard lock(mutex_);
  if (!budget_.charge(charged)) {
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("it reads too slowly: {} bytes of replies wait", budget_.waiting_bytes()));
  }
  if (free_.size() <= kind) free_.resize(kind + 1);
  std::unique_ptr<Block> block;
  if (free_[kind].empty()) {
    block = std::make_unique<Block>();
  } else {
    block = std::move(free_[kind].back());
    free_[kind].pop_back();
    kept_bytes_ -= block->memory.size();
  }
  block->charged = charged;
  return block;
}

// Keeps the block for reuse, unless more memory would then be kept than may be lent. So blocks of
// sizes that are no longer asked for take a limited amount of memory.
void ReplyBlocks::give_back(Block* block) {
  std::unique_ptr<Block> back(block);
  back->common.reset();
  const std::shared_ptr<ReplyBlocks> owner = std::move(block->owner);
  const std::size_t memory = block->memory.size(), kind = kind_of(memory);
  const std::lock_guard lock(owner->mutex_);
  owner->budget_.release(block->charged);
  if (owner->closed_ || owner->kept_bytes_ + memory > owner->budget_.most_bytes()) return;
  owner->kept_bytes_ += memory;
  if (owner->free_.size() <= kind) owner->free_.resize(kind + 1);
  owner->free_[kind].push_back(std::move(back));
}

void ReplyBlocks::allow_values(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  budget_.allow_values(bytes);
}

void ReplyBlocks::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  free_.clear();
  kept_bytes_ = 0;
}

std::size_t ReplyBlocks::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

}  // namespace paceline
