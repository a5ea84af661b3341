// Memory for replies: blocks that are lent to a connection until it has sent them.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "net/link.h"

namespace paceline {

/// Blocks are made as needed and used again. One object per connection; safe from any thread.
class ReplyBlocks : public std::enable_shared_from_this<ReplyBlocks> {
 public:
  /// A peer that lets more than `most_bytes` of replies pile up is thrown off (kUnavailable).
  explicit ReplyBlocks(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  void allow(std::size_t most_bytes) { most_bytes_ = most_bytes; }
  ~ReplyBlocks();
  ReplyBlocks(const ReplyBlocks&) = delete;
  ReplyBlocks& operator=(const ReplyBlocks&) = delete;

  struct Block {
    Buffer memory;
    std::size_t bytes = 0;               // of it that are used now
    std::shared_ptr<ReplyBlocks> owner;  // set while the block is lent
    std::span<std::byte> span() const { return memory.span().first(bytes); }
  };
  struct GiveBack {
    void operator()(Block* block) const { ReplyBlocks::give_back(block); }
  };
  using Lent = std::unique_ptr<Block, GiveBack>;

  Lent take(std::size_t bytes);
  /// The block comes back when the connection has sent it.
  static void send(Connection& connection, FrameHeader header, Lent block);

 private:
  static void give_back(Block* block);

  std::atomic<std::size_t> most_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> free_;
  std::size_t lent_bytes_ = 0;
};

}  // namespace paceline
