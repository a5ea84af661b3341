#include "params/ps/replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/copy_bytes.h"
#include "params/protocol/frame_cuts.h"
#include "params/wire/task_state.h"

namespace paceline {

void ReplyQueue::set_order(std::span<const std::uint32_t> pieces) {
  const std::lock_guard lock(mutex_);
  schedule_.set_order(pieces);
}

void ReplyQueue::push(const FrameHeader& header, ReplyBlocks::Lent block) {
  {
    const std::lock_guard lock(mutex_);
    if (!connection_) return;
    const std::size_t bytes = block->bytes;
    schedule_.push(header, bytes, std::move(block));
  }
  send_some();
}

// Only one thread sends at a time, so that replies keep their order. This thread also sends what
// other threads push meanwhile, and what may be sent because other replies were sent.
void ReplyQueue::send_some() {
  std::unique_lock lock(mutex_);
  if (sending_) return;
  sending_ = true;
  while (connection_) {
    std::optional<Schedule::Reply> reply = schedule_.next();
    if (!reply) break;
    const std::shared_ptr<Connection> connection = connection_;
    lock.unlock();
    send(*connection, reply->header, std::move(reply->payload));
    lock.lock();
  }
  sending_ = false;
}

bool ReplyQueue::send_at_once(const FrameHeader& header, std::span<const std::byte> payload) {
  std::unique_lock lock(mutex_);
  const bool at_rest = !sending_ && schedule_.at_rest();
  if (!connection_ || !at_rest || !connection_->idle()) return false;
  sending_ = true;
  const std::shared_ptr<Connection> connection = connection_;
  lock.unlock();
  connection->send_copy(header, payload);
  lock.lock();
  sending_ = false;
  lock.unlock();
  send_some();
  return true;
}

void ReplyQueue::send(Connection& connection, FrameHeader header, ReplyBlocks::Lent block) {
  header.payload_bytes = std::uint32_t(block->bytes);
  block->queue = shared_from_this();
  const std::span<const std::byte> payload = block->span();
  connection.send(
      header, payload,
      [](void* sent) {
        ReplyBlocks::Lent back(static_cast<ReplyBlocks::Block*>(sent));
        const std::shared_ptr<ReplyQueue> queue = std::move(back->queue);
        const std::size_t bytes = back->bytes;
        back.reset();
        queue->on_sent(bytes);
      },
      block.release());
}

void ReplyQueue::on_sent(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    schedule_.sent(bytes);
  }
  send_some();
}

std::shared_ptr<Connection> ReplyQueue::connection() {
  const std::lock_guard lock(mutex_);
  return connection_;
}

// Releases the lock before the blocks and the connection, since the end of the connection may call
// on_sent.
void ReplyQueue::drop() {
  std::shared_ptr<Connection> ended;
  std::vector<Schedule::Reply> unsent;
  const std::lock_guard lock(mutex_);
  ended.swap(connection_);
  unsent = schedule_.take_waiting();
}

Replies::Replies(std::shared_ptr<Connection> connection)
    : blocks_(std::make_shared<ReplyBlocks>()),
      queue_(std::make_shared<ReplyQueue>(std::move(connection))) {}

void Replies::allow(const Shard& shard) { blocks_->allow_values(shard.bytes()); }

ReplyBlocks::Lent Replies::rounded(const ShardPiece& piece, ReplyBlocks::Lent block,
                                   std::size_t values_at) const {
  if (rounds(piece)) round_values(*block, wire_, values_at);
  return block;
}

void Replies::send_block(MessageType type, const FrameHeader& header, ReplyBlocks::Lent block) {
  FrameHeader typed = header;
  typed.type = std::uint16_t(type);
  queue_->push(typed, std::move(block));
}

void Replies::send(MessageType type, std::span<const std::byte> payload, std::uint64_t step) {
  const std::shared_ptr<Connection> to = queue_->connection();
  if (!to) return;
  ReplyBlocks::Lent block = take(payload.size());
  std::copy(payload.begin(), payload.end(), block->span().begin());
  const std::span<const std::byte> bytes = block->span();
  to->send({.type = std::uint16_t(type), .step = step}, bytes, &ReplyBlocks::sent, block.release());
}

// Frames are sent in order, so the payload is free once the last frame is sent.
void Replies::send_task_state(std::shared_ptr<const std::vector<std::byte>> state,
                              std::uint64_t step) {
  using Kept = std::shared_ptr<const std::vector<std::byte>>;
  const std::shared_ptr<Connection> to = queue_->connection();
  if (!to) return;
  const std::span<const std::byte> bytes = *state;
  auto kept = std::make_unique<Kept>(std::move(state));
  for_state_frames(bytes, [&](std::uint16_t flags, std::span<const std::byte> frame) {
    const FrameHeader header{
        .type = std::uint16_t(MessageType::kTaskState), .flags = flags, .step = step};
    if (flags == kStateGoesOn) return to->send(header, frame);
    to->send(
        header, frame, [](void* sent) { delete static_cast<Kept*>(sent); }, kept.release());
  });
}

void Replies::tell(MessageType type, std::uint32_t piece, std::uint64_t step) {
  if (const std::shared_ptr<Connection> to = queue_->connection()) {
    to->send({.type = std::uint16_t(type), .id = piece, .step = step}, {}, &ReplyBlocks::sent,
             take(0).release());
  }
}

bool Replies::share(std::uint32_t number, std::shared_ptr<const SharedMemory> memory) {
  const std::shared_ptr<Connection> to = queue_->connection();
  if (!to || !to->can_share()) return false;
  to->share(number, std::move(memory));
  return true;
}

// A small value that can be sent at once needs no block: the connection sends it from the shard's
// memory.
bool Replies::send_value_at_once(ShardPiece& piece, const FrameHeader& header) {
  if (rounds(piece)) return false;
  return piece.with_value([&](std::span<const std::byte> value) {
    return !value.empty() && queue_->send_at_once(header, value);
  });
}

// The change may come from another worker's contribution. That contribution must not fail because
// this worker cannot be told of the change.
void Replies::on_changed(ShardPiece& piece, bool wanted) {
  const std::uint64_t version = piece.changes().version();
  try {
    if (wanted) return send_values_ahead(piece);
    tell(MessageType::kChanged, piece.where().id, version);
  } catch (const Error&) {
    close(Deadline::after(Duration()));  // too much waits for the worker
  }
}

void Replies::send_values(ShardPiece& piece, std::uint64_t step) {
  send_and_change(piece, 0, step);
}

void Replies::send_subscribed_values(ShardPiece& piece) {
  send_and_change(piece, kOfVersion, piece.changes().subscribe(*this));
}

void Replies::send_values_ahead(ShardPiece& piece) {
  send_frames(piece, kOfVersion | kAskedAhead, piece.changes().subscribe(*this));
}

void Replies::send_and_change(ShardPiece& piece, std::uint16_t flags, std::uint64_t step) {
  send_frames(piece, flags, step);
  piece.was_read(ShardPiece::Reading::kFrames);
}

void Replies::send_frames(ShardPiece& piece, std::uint16_t flags, std::uint64_t step) {
  FrameHeader header{.flags = flags, .id = piece.where().id, .step = step};
  header.type = std::uint16_t(MessageType::kValues);
  if (send_value_at_once(piece, header)) return;
  for (const Cut cut : byte_cuts(piece.bytes())) {
    ReplyBlocks::Lent block = take(cut.size);
    piece.copy(cut.begin, block->span());
    header.offset = cut.begin;
    send_block(MessageType::kValues, header, rounded(piece, std::move(block)));
  }
}

void Replies::answer_values(CommonValues& values, std::uint64_t step) {
  const FrameHeader header{.type = std::uint16_t(MessageType::kValues),
                           .id = values.piece().where().id,
                           .offset = values.part().begin,
                           .step = step};
  if (values.is_whole() && send_value_at_once(values.piece(), header)) return;
  queue_->push(header, blocks_->take(values.travelling_as(wire_)));
}

void Replies::send_rows(ShardPiece& piece, std::span<const std::int32_t> rows, std::uint64_t step) {
  if (!std::all_of(rows.begin(), rows.end(),
                   [&](std::int32_t row) { return piece.has_row(row); })) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[ps] rows of {} are asked for that are not in piece {}",
                            piece.variable().name, piece.where().id));
  }
  for (const Cut cut : row_cuts(rows.size(), piece.row_bytes())) {
    const std::span<const std::int32_t> some = rows.subspan(cut.begin, cut.size);
    const std::size_t values_at = row_numbers_bytes(some.size());
    ReplyBlocks::Lent block = take(values_at + some.size() * piece.row_bytes());
    const std::uint32_t count = std::uint32_t(some.size());
    std::byte* at = block->span().data();
    std::memcpy(at, &count, sizeof(count));
    std::memcpy(at + sizeof(count), some.data(), some.size_bytes());
    piece.copy_rows(some, block->span().subspan(values_at));
    send_block(MessageType::kRowValues, {.id = piece.where().id, .step = step},
               rounded(piece, std::move(block), values_at));
  }
}

void Replies::send_state(ShardPiece& piece) {
  const Buffer moment(piece.all_bytes());
  piece.copy_all(moment.span());
  std::size_t begin = 0;
  for (std::size_t array = 0; array < piece.arrays(); ++array) {
    const std::size_t bytes = piece.array_bytes(array);
    for (const Cut cut : byte_cuts(bytes)) {
      ReplyBlocks::Lent block = take(cut.size);
      copy_bytes(block->span().data(), moment.data() + begin + cut.begin, cut.size);
      const FrameHeader header{
          .flags = std::uint16_t(array), .id = piece.where().id, .offset = cut.begin};
      send_block(MessageType::kState, header, std::move(block));
    }
    begin += bytes;
  }
}

void Replies::send_again(ShardPiece& piece, const FrameHeader& header, std::size_t bytes,
                         Connection& to) {
  ReplyBlocks::Lent block = take(rounds(piece) ? 2 * bytes : bytes);
  piece.copy(header.offset, block->span());
  block = rounded(piece, std::move(block));
  const std::span<const std::byte> payload = block->span();
  to.send(header, payload, &ReplyBlocks::sent, block.release());
}

void Replies::close(Deadline deadline) {
  if (const std::shared_ptr<Connection> open = queue_->connection()) open->close(deadline);
}

void Replies::drop() {
  queue_->drop();
  blocks_->close();
}

}  // namespace paceline
