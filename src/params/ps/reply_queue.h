// The replies that wait to be sent to one worker: the real driver of protocol/reply_schedule.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "net/link.h"
#include "params/protocol/reply_schedule.h"
#include "params/ps/reply_blocks.h"

namespace paceline {

/// Gives a connection the replies that its schedule lets go. Safe from any thread; the connection
/// keeps it alive until all was sent.
class ReplyQueue : public std::enable_shared_from_this<ReplyQueue> {
 public:
  explicit ReplyQueue(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  /// Sets the pieces that go first, by id, the first needed first. All others follow them, in the
  /// order of push().
  void set_order(std::span<const std::uint32_t> pieces);
  void push(const FrameHeader& header, ReplyBlocks::Lent block);
  /// Sends the reply at once if no other is on its way, else returns false. The payload is borrowed
  /// for this call only.
  bool send_at_once(const FrameHeader& header, std::span<const std::byte> payload);
  /// The connection, for a message that waits behind no reply. Null after drop().
  std::shared_ptr<Connection> connection();
  /// Sends nothing any more, since the connection has ended.
  void drop();

 private:
  using Schedule = ReplySchedule<ReplyBlocks::Lent>;
  void send_some();
  void send(Connection& connection, FrameHeader header, ReplyBlocks::Lent block);
  void on_sent(std::size_t bytes);

  std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
  Schedule schedule_;
  bool sending_ = false;  // some thread is in send_some
};

}  // namespace paceline
