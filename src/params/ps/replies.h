// Everything that a ps sends to one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "net/link.h"
#include "params/protocol/reply_schedule.h"
#include "params/ps/common_values.h"
#include "params/ps/reply_blocks.h"
#include "params/shard/shard.h"
#include "params/wire/message.h"

namespace paceline {

/// The replies that wait to be sent to one worker: the real driver of protocol/reply_schedule.h.
/// The queue gives a connection the replies that its schedule releases. Thread-safe. A connection
/// keeps the queue alive until it has sent all replies that it was given.
class ReplyQueue : public std::enable_shared_from_this<ReplyQueue> {
 public:
  explicit ReplyQueue(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  /// Sets the order of the pieces by id, the first needed first. Replies about all other pieces
  /// follow, in the order of push().
  void set_order(std::span<const std::uint32_t> pieces);
  void push(const FrameHeader& header, ReplyBlocks::Lent block);
  /// Sends the reply at once if no other reply waits or is being sent; otherwise returns false.
  /// Borrows the payload for this call only.
  bool send_at_once(const FrameHeader& header, std::span<const std::byte> payload);
  /// Returns the connection, for a message that need not wait for replies; null after drop().
  std::shared_ptr<Connection> connection();
  /// Sends nothing from now on, since the connection has ended.
  void drop();

 private:
  using Schedule = ReplySchedule<ReplyBlocks::Lent>;
  void send_some();
  void send(Connection& connection, FrameHeader header, ReplyBlocks::Lent block);
  void on_sent(std::size_t bytes);

  std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
  Schedule schedule_;
  bool sending_ = false;  // some thread gives replies to the connection
};

/// Sends values in frames (protocol/frame_cuts.h). The values of each frame are copied, or sent at
/// once, under the piece's lock. Thread-safe; after drop() it sends nothing.
class Replies : public ChangeListener {
 public:
  explicit Replies(std::shared_ptr<Connection> connection);

  /// Call it after the handshake. Until then, only a few replies may wait; from then on, as many
  /// may wait as the values and slots of the shard need.
  void allow(const Shard& shard);
  /// Sets the type in which the worker's contributions travel. Its float32 values then travel as
  /// type_of_values(wire).
  void set_wire(DType wire) { wire_ = wire; }
  /// Sets the order in which the worker needs pieces, the first needed first.
  void set_order(std::span<const std::uint32_t> pieces) { queue_->set_order(pieces); }
  /// Sends a message at once: it does not wait behind values.
  void send(MessageType type, std::span<const std::byte> payload, std::uint64_t step = 0);
  /// Sends the state of a task. The payload is kept until it is sent, and not charged to the
  /// budget.
  void send_task_state(std::shared_ptr<const std::vector<std::byte>> state, std::uint64_t step);
  /// Sends a message about a piece that has no payload.
  void tell(MessageType type, std::uint32_t piece, std::uint64_t step = 0);
  /// Shares memory with the worker. Returns false when the connection cannot share memory, since
  /// the worker is on another host or the connection has ended.
  bool share(std::uint32_t number, std::shared_ptr<const SharedMemory> memory);
  void on_changed(ShardPiece& piece, bool wanted) override;
  /// Sends all of a piece (kValues). The piece then changes, if the ps changes it after each read.
  void send_values(ShardPiece& piece, std::uint64_t step);
  /// Sends a part of a piece as the answer to a contribution.
  void answer_values(CommonValues& values, std::uint64_t step);
  /// Sends all of a piece to a worker that caches the values. The worker is told, once, when they
  /// have changed.
  void send_subscribed_values(ShardPiece& piece);
  /// Sends all of a piece that the worker has asked for ahead. The worker is then told of the next
  /// change.
  void send_values_ahead(ShardPiece& piece);
  /// Sends rows (kRowValues), which are named by their ids in the variable. Throws kDataLoss unless
  /// they are in the piece.
  void send_rows(ShardPiece& piece, std::span<const std::int32_t> rows, std::uint64_t step);
  /// Sends value and slots as they are at one moment (kState).
  void send_state(ShardPiece& piece);

  ReplyBlocks::Lent take(std::size_t bytes) { return blocks_->take(bytes); }
  /// Returns the block after rounding the piece's values in it, which begin at byte `values_at`, to
  /// the type in which they travel.
  ReplyBlocks::Lent rounded(const ShardPiece& piece, ReplyBlocks::Lent block,
                            std::size_t values_at = 0) const;
  void send_block(MessageType type, const FrameHeader& header, ReplyBlocks::Lent block);

  void close(Deadline deadline);
  /// Sends values once more, as they are now, because the connection on which they were sent was
  /// cut.
  void send_again(ShardPiece& piece, const FrameHeader& header, std::size_t bytes, Connection& to);
  /// Sends nothing from now on.
  void drop();

 private:
  bool rounds(const ShardPiece& piece) const { return travels_rounded(piece, wire_); }
  bool send_value_at_once(ShardPiece& piece, const FrameHeader& header);
  void send_frames(ShardPiece& piece, std::uint16_t flags, std::uint64_t step);
  void send_and_change(ShardPiece& piece, std::uint16_t flags, std::uint64_t step);

  std::shared_ptr<ReplyBlocks> blocks_;
  std::shared_ptr<ReplyQueue> queue_;
  DType wire_ = DType::kFloat32;  // of contributions; set before any value is sent
};

}  // namespace paceline
