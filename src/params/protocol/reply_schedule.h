// Decides in which order the replies to one worker go to its connection, and how many at a time.
// Plain state machines: a reply is a header and a size, and the driver has its payload. They have
// no thread, socket or clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "net/frame.h"
#include "params/wire/message.h"

namespace paceline {

/// The most bytes of unsent replies on a connection, unless a single reply is longer. Two frames
/// are enough: while the connection sends one, it has the next.
constexpr std::size_t kReplyWindowBytes = 2 * kChunkBytes;

/// The order in which a worker needs pieces.
class NeedOrder {
 public:
  /// Sets the order of the pieces, by id, the first needed first. Pieces that are not listed
  /// follow.
  void set(std::span<const std::uint32_t> pieces);
  /// Returns the rank of the reply with this header. Lower ranks go first; replies of one rank keep
  /// their order.
  std::uint32_t rank(const FrameHeader& header) const;

 private:
  std::vector<std::uint32_t> ranks_;  // by piece
};

/// Releases first the reply whose piece is needed first; replies about one piece keep their order.
/// A connection sends in the order in which it gets replies, so it is given only one window of
/// replies at a time. A reply that is needed soon can then overtake those that still wait here. No
/// reply waits for a reply that does not exist yet. `Payload` is the type of the data that the
/// driver sends with the header.
template <typename Payload>
class ReplySchedule {
 public:
  struct Reply {
    FrameHeader header;
    std::size_t bytes = 0;  // of the payload
    Payload payload;
    std::uint32_t rank = 0;
    std::uint64_t number = 0;
  };

  void set_order(std::span<const std::uint32_t> pieces) { order_.set(pieces); }
  /// Adds a reply to send.
  void push(const FrameHeader& header, std::size_t bytes, Payload payload) {
    waiting_.push_back({header, bytes, std::move(payload), order_.rank(header), pushed_++});
    std::push_heap(waiting_.begin(), waiting_.end(), goes_later);
  }
  /// Takes the reply that may go to the connection now; nullopt if none may. Call it again after
  /// push() and after sent().
  std::optional<Reply> next() {
    if (waiting_.empty() || !fits(waiting_.front().bytes)) return std::nullopt;
    std::pop_heap(waiting_.begin(), waiting_.end(), goes_later);
    std::optional<Reply> reply(std::move(waiting_.back()));
    waiting_.pop_back();
    in_connection_ += reply->bytes;
    return reply;
  }
  /// The connection has sent a reply of this many bytes.
  void sent(std::size_t bytes) { in_connection_ -= bytes; }
  /// True when no reply waits here or in the connection, so that a new reply may go straight to the
  /// connection.
  bool at_rest() const { return waiting_.empty() && in_connection_ == 0; }
  /// Returns the replies that will not be sent, since the connection has ended.
  std::vector<Reply> take_waiting() { return std::exchange(waiting_, {}); }

 private:
  static bool goes_later(const Reply& one, const Reply& other) {
    return one.rank != other.rank ? one.rank > other.rank : one.number > other.number;
  }
  bool fits(std::size_t bytes) const {
    return in_connection_ == 0 || in_connection_ + bytes <= kReplyWindowBytes;
  }

  NeedOrder order_;
  std::vector<Reply> waiting_;  // a heap with the next reply on top
  std::uint64_t pushed_ = 0;
  std::size_t in_connection_ = 0;  // bytes
};

}  // namespace paceline
