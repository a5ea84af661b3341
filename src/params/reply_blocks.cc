#include "params/reply_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "paceline/error.h"

namespace paceline {

ReplyBlocks::~ReplyBlocks() = default;

ReplyBlocks::Lent ReplyBlocks::take(std::size_t bytes) {
  std::unique_ptr<Block> block = take_free(bytes);
  block->bytes = bytes;
  block->owner = shared_from_this();
  Lent lent(block.release());  // counted as lent: given back, whatever happens
  if (lent->memory.size() < bytes) lent->memory = Buffer(std::max(bytes, std::size_t{4096}));
  return lent;
}

std::unique_ptr<ReplyBlocks::Block> ReplyBlocks::take_free(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (lent_bytes_ + bytes > most_bytes_) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("it reads too slowly: {} bytes of replies wait", lent_bytes_));
  }
  if (free_.empty()) free_.push_back(std::make_unique<Block>());
  std::unique_ptr<Block> block = std::move(free_.back());
  free_.pop_back();
  lent_bytes_ += bytes;
  return block;
}

void ReplyBlocks::shorten(Block& block, std::size_t bytes) {
  const std::lock_guard lock(block.owner->mutex_);
  block.owner->lent_bytes_ -= block.bytes - bytes;
  block.bytes = bytes;
}

void ReplyBlocks::give_back(Block* block) {
  std::unique_ptr<Block> back(block);
  const std::shared_ptr<ReplyBlocks> owner = std::move(block->owner);
  const std::lock_guard lock(owner->mutex_);
  owner->lent_bytes_ -= block->bytes;
  if (!owner->closed_) owner->free_.push_back(std::move(back));
}

void ReplyBlocks::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  free_.clear();
}

std::size_t ReplyBlocks::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& block : free_) bytes += block->memory.size();
  return bytes;
}

}  // namespace paceline
