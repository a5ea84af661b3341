// What waits to be sent to one worker, in the order in which it needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "net/link.h"
#include "params/server/reply_blocks.h"

namespace paceline {

/// Of the replies that are there, the one whose piece is needed first goes first; those about one
/// piece stay in their order. A connection is first in, first out: so it is given only a few at a
/// time, and what comes later can still go before what waits here. Nothing is held back for what
/// is not there yet. Safe from any thread; the connection keeps it alive until all was sent.
class ReplyQueue : public std::enable_shared_from_this<ReplyQueue> {
 public:
  explicit ReplyQueue(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  /// Pieces by id, the first needed first; others come after them, in the order of their coming.
  void set_order(std::span<const std::uint32_t> pieces);
  void push(const FrameHeader& header, ReplyBlocks::Lent block);
  /// Sends it at once if nothing else is on its way; the payload is borrowed for this call only.
  bool send_at_once(const FrameHeader& header, std::span<const std::byte> payload);
  /// For what waits behind nothing. Null after drop().
  std::shared_ptr<Connection> connection();
  /// The connection has ended: nothing is sent any more.
  void drop();

 private:
  struct Reply {
    std::uint32_t rank = 0;
    std::uint64_t number = 0;
    FrameHeader header;
    ReplyBlocks::Lent block;
    bool operator<(const Reply& other) const {  // the largest of a heap goes first
      return rank != other.rank ? rank > other.rank : number > other.number;
    }
  };
  std::uint32_t rank_of(const FrameHeader& header) const;
  bool may_send() const;
  void send_some();
  void send(Connection& connection, FrameHeader header, ReplyBlocks::Lent block);
  void on_sent(std::size_t bytes);

  std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
  std::vector<std::uint32_t> ranks_;  // by piece
  std::vector<Reply> waiting_;        // a heap
  std::uint64_t pushed_ = 0;
  std::size_t bytes_in_connection_ = 0;
  bool sending_ = false;  // some thread is in send_some
};

}  // namespace paceline
