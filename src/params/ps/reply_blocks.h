// Memory for replies: blocks that a connection borrows until it has sent them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "params/protocol/reply_budget.h"

namespace paceline {

class ReplyQueue;

/// Makes blocks as needed, and reuses them. Each worker has one object, and rounds have one for all
/// workers. Thread-safe.
class ReplyBlocks : public std::enable_shared_from_this<ReplyBlocks> {
 public:
  explicit ReplyBlocks(ReplyBudget budget = ReplyBudget()) : budget_(budget) {}
  /// Call it after the handshake. `bytes`: the bytes of values and slots that the ps holds.
  void allow_values(std::size_t bytes);
  ~ReplyBlocks();
  ReplyBlocks(const ReplyBlocks&) = delete;
  ReplyBlocks& operator=(const ReplyBlocks&) = delete;

  struct Block {
    Buffer memory;
    /// The block whose bytes are sent; null if this block has the bytes itself.
    std::shared_ptr<const Block> common;
    std::byte* data = nullptr;  // the bytes to send: this block's memory, or that of `common`
    std::size_t bytes = 0;      // bytes in use, at most as many as were taken
    std::size_t charged = 0;    // memory charged to the budget while the block is lent
    std::shared_ptr<ReplyBlocks> owner;  // set while the block is lent
    std::shared_ptr<ReplyQueue> queue;   // set while a connection has it
    std::span<std::byte> span() const { return {data, bytes}; }
  };
  struct GiveBack {
    void operator()(Block* block) const { ReplyBlocks::give_back(block); }
  };
  using Lent = std::unique_ptr<Block, GiveBack>;
  /// A block for several peers. It is given back once it was sent to all of them.
  using Common = std::shared_ptr<const Block>;

  /// Lends a block. Throws kUnavailable when more would wait for the peer than its budget allows.
  Lent take(std::size_t bytes);
  /// Lends a block with the bytes of `common`, which are charged to the budget as a copy would be.
  /// Throws like the other take().
  Lent take(Common common);
  /// Keeps no memory from now on, since nothing more will be sent.
  void close();
  /// The memory of blocks that wait for reuse.
  std::size_t kept_bytes() const;
  /// The `sent` function for Connection::send; its context is a block that was lent.
  static void sent(void* block) { give_back(static_cast<Block*>(block)); }

 private:
  static void give_back(Block* block);
  Lent lend(std::size_t bytes, std::size_t charged, std::size_t memory);
  std::unique_ptr<Block> take_free(std::size_t charged, std::size_t memory);

  mutable std::mutex mutex_;
  ReplyBudget budget_;
  std::vector<std::vector<std::unique_ptr<Block>>> free_;  // by the power of two of their size
  bool closed_ = false;
  std::size_t kept_bytes_ = 0;
};

}  // namespace paceline
