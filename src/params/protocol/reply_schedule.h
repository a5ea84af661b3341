// Decides in which order the replies to one worker go to its connection, and how many at a time.
// Plain state machines: a reply is a header and a size, and what it carries is its driver's. No
// thread, socket or clock inside.
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

/// A connection holds at most so many bytes of replies that it has not sent, unless a single reply
/// is longer: enough that it has the next frame while it sends one.
constexpr std::size_t kReplyWindowBytes = 2 * kChunkBytes;

/// The order in which a worker needs pieces.
class NeedOrder {
 public:
  /// Pieces by id, the first needed first. All others come after them.
  void set(std::span<const std::uint32_t> pieces);
  /// Lower ranks go first. Replies of one rank keep their order.
  std::uint32_t rank(const FrameHeader& header) const;

 private:
  std::vector<std::uint32_t> ranks_;  // by piece
};

/// The reply whose piece is needed first goes first, and replies about one piece stay in their
/// order. A connection is first in, first out, so it is given one window of replies: a later reply
/// can still go before the ones that wait here. Nothing is held back for a reply that does not
/// exist yet. `Payload` is what the driver sends with the header.
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
  /// A reply is there to be sent.
  void push(const FrameHeader& header, std::size_t bytes, Payload payload) {
    waiting_.push_back({header, bytes, std::move(payload), order_.rank(header), pushed_++});
    std::push_heap(waiting_.begin(), waiting_.end(), goes_later);
  }
  /// Takes the reply that goes to the connection now. Without one the driver calls again after
  /// push() or sent().
  std::optional<Reply> next() {
    if (waiting_.empty() || !fits(waiting_.front().bytes)) return std::nullopt;
    std::pop_heap(waiting_.begin(), waiting_.end(), goes_later);
    std::optional<Reply> reply(std::move(waiting_.back()));
    waiting_.pop_back();
    in_connection_ += reply->bytes;
    return reply;
  }
  /// The connection has sent a reply of that many bytes.
  void sent(std::size_t bytes) { in_connection_ -= bytes; }
  /// True while a reply that goes straight to the connection overtakes none.
  bool at_rest() const { return waiting_.empty() && in_connection_ == 0; }
  /// The connection has ended. Returns what will not be sent.
  std::vector<Reply> take_waiting() { return std::exchange(waiting_, {}); }

 private:
  static bool goes_later(const Reply& one, const Reply& other) {
    return one.rank != other.rank ? one.rank > other.rank : one.number > other.number;
  }
  bool fits(std::size_t bytes) const {
    return in_connection_ == 0 || in_connection_ + bytes <= kReplyWindowBytes;
  }

  NeedOrder order_;
  std::vector<Reply> waiting_;  // a heap with the next one on top
  std::uint64_t pushed_ = 0;
  std::size_t in_connection_ = 0;  // bytes
};

}  // namespace paceline
