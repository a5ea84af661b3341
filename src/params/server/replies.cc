#include "params/server/replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/copy_bytes.h"
#include "params/wire/rounded_floats.h"
#include "params/wire/task_state.h"

namespace paceline {
namespace {

constexpr std::size_t kMostBeforeHandshake = std::size_t{1} << 20;
constexpr std::size_t kMostBesideValues = std::size_t{64} << 20;

}  // namespace

Replies::Replies(std::shared_ptr<Connection> connection)
    : blocks_(std::make_shared<ReplyBlocks>(kMostBeforeHandshake)),
      queue_(std::make_shared<ReplyQueue>(std::move(connection))) {}

void Replies::allow(const Shard& shard) { blocks_->allow(2 * shard.bytes() + kMostBesideValues); }

bool Replies::rounds(const ShardPiece& piece) const {
  return wire_ != DType::kFloat32 && piece.variable().dtype == DType::kFloat32;
}

ReplyBlocks::Lent Replies::rounded(const ShardPiece& piece, ReplyBlocks::Lent block,
                                   std::size_t values_at) const {
  if (!rounds(piece)) return block;
  const std::size_t bytes = round_in_place(block->span().subspan(values_at)).size();
  block->bytes = values_at + bytes;
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

// Frames go in their order: with the last one all are sent.
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

// From where it lies, if it is small and can go at once.
bool Replies::send_value_at_once(ShardPiece& piece, const FrameHeader& header) {
  if (rounds(piece)) return false;
  return piece.with_value([&](std::span<const std::byte> value) {
    return !value.empty() && queue_->send_at_once(header, value);
  });
}

// Another worker's contribution may have changed it: what cannot be sent is that connection's own
// trouble.
void Replies::on_changed(ShardPiece& piece, bool wanted) {
  const std::uint64_t version = piece.watchers().version();
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

void Replies::send_watched_values(ShardPiece& piece) {
  send_and_change(piece, kOfVersion, piece.watchers().watch(*this));
}

void Replies::send_values_ahead(ShardPiece& piece) {
  send_frames(piece, kOfVersion | kAskedAhead, piece.watchers().watch(*this));
}

void Replies::send_and_change(ShardPiece& piece, std::uint16_t flags, std::uint64_t step) {
  send_frames(piece, flags, step);
  piece.was_read(ShardPiece::Reading::kFrames);
}

void Replies::send_frames(ShardPiece& piece, std::uint16_t flags, std::uint64_t step) {
  FrameHeader header{.flags = flags, .id = piece.where().id, .step = step};
  header.type = std::uint16_t(MessageType::kValues);
  const bool sent = send_value_at_once(piece, header);
  for (; !sent && header.offset < piece.bytes(); header.offset += kChunkBytes) {
    ReplyBlocks::Lent block = take(std::min(kChunkBytes, piece.bytes() - header.offset));
    piece.copy(header.offset, block->span());
    send_block(MessageType::kValues, header, rounded(piece, std::move(block)));
  }
}

void Replies::send_rows(ShardPiece& piece, std::span<const std::int32_t> rows, std::uint64_t step) {
  if (!std::all_of(rows.begin(), rows.end(),
                   [&](std::int32_t row) { return piece.has_row(row); })) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[ps] rows of {} are asked for that are not in piece {}",
                            piece.variable().name, piece.where().id));
  }
  const std::size_t row = piece.row_bytes() + sizeof(std::int32_t);
  const std::size_t most = std::max<std::size_t>(1, kChunkBytes / row);
  for (std::size_t done = 0; done < rows.size(); done += most) {
    const std::span<const std::int32_t> some =
        rows.subspan(done, std::min(most, rows.size() - done));
    ReplyBlocks::Lent block = take(sizeof(std::uint32_t) + some.size() * row);
    const std::uint32_t count = std::uint32_t(some.size());
    std::byte* at = block->span().data();
    std::memcpy(at, &count, sizeof(count));
    std::memcpy(at + sizeof(count), some.data(), some.size_bytes());
    piece.copy_rows(some, block->span().subspan(sizeof(count) + some.size_bytes()));
    send_block(MessageType::kRowValues, {.id = piece.where().id, .step = step},
               rounded(piece, std::move(block), sizeof(count) + some.size_bytes()));
  }
}

void Replies::send_state(ShardPiece& piece) {
  const Buffer moment(piece.all_bytes());
  piece.copy_all(moment.span());
  std::size_t begin = 0;
  for (std::size_t array = 0; array < piece.arrays(); ++array) {
    const std::size_t bytes = piece.array_bytes(array);
    for (std::size_t offset = 0; offset < bytes; offset += kChunkBytes) {
      ReplyBlocks::Lent block = take(std::min(kChunkBytes, bytes - offset));
      copy_bytes(block->span().data(), moment.data() + begin + offset, block->bytes);
      const FrameHeader header{
          .flags = std::uint16_t(array), .id = piece.where().id, .offset = offset};
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
