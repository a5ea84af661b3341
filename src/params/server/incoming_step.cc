#include "params/server/incoming_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/wire/rounded_floats.h"

namespace paceline {
namespace {

[[noreturn]] void reject(const std::string& why) {
  throw Error(ErrorCode::kDataLoss, "[ps] " + why);
}

WantedValues wanted_by(std::uint16_t flags) {
  if ((flags & kRenewCopy) != 0) return WantedValues::kInItsCopy;
  return (flags & kSendValues) != 0 ? WantedValues::kInFrames : WantedValues::kNone;
}

}  // namespace

void IncomingStep::begin(std::int64_t step, const StepBegin& begin, Fate fate) {
  if (open_) reject(fmt::format("step {} begins before step {} has ended", step, step_));
  if (begin.learning_rates.size() != shard_.variables().size()) {
    reject(fmt::format("{} learning rates for {} variables", begin.learning_rates.size(),
                       shard_.variables().size()));
  }
  step_ = step;
  begin_ = begin;
  fate_ = fate;
  open_ = true;
}

void IncomingStep::check_step(std::int64_t step, MessageType type) const {
  if (!open_ || step != step_) {
    reject(fmt::format("{} of step {} outside of it", name_of(type), step));
  }
}

RuleStep IncomingStep::rule_step(std::size_t position, float clip_scale) const {
  const ShardPiece& piece = shard_.at(position);
  return {.learning_rate = begin_.learning_rates[std::size_t(piece.where().variable)],
          .clip_scale = clip_scale,
          .weight_decay = piece.variable().weight_decay,
          .count = pieces_[position].count,
          .average_decay = piece.variable().average_decay};
}

void IncomingStep::start(std::size_t position, IncomingPiece& piece) {
  ShardPiece& target = shard_.at(position);
  if (!target.variable().trained) reject("a contribution to frozen " + target.variable().name);
  piece.started = true;
  piece.received = 0;
  const bool sparse = target.variable().sparse;
  piece.expected = sparse ? piece.rows.size() * target.row_bytes() : target.bytes();
  if (counts()) {
    piece.count = target.begin_contribution();
    piece.under_way = true;
  }
  piece.applied = piece.shared = false;
  piece.wanted = sparse ? WantedValues::kNone : WantedValues::kInFrames;
  piece.gradient = {};
}

void IncomingStep::make_room(std::size_t position, IncomingPiece& piece) const {
  const bool all = shard_.at(position).variable().sparse || begin_.clipped;
  const std::size_t bytes = all ? piece.expected : std::min(piece.expected, kChunkBytes);
  if (piece.memory.size() < bytes) piece.memory = Buffer(bytes);
  if (all) piece.gradient = piece.memory.span().first(bytes);
  piece.applied = !all;
}

void IncomingStep::set_rows(std::size_t position, std::int64_t step,
                            std::span<const std::int32_t> rows) {
  check_step(step, MessageType::kRowIds);
  take_rows(position, rows);
  make_room(position, pieces_[position]);
}

void IncomingStep::take_rows(std::size_t position, std::span<const std::int32_t> rows) {
  const ShardPiece& target = shard_.at(position);
  IncomingPiece& piece = pieces_[position];
  if (!target.variable().sparse || piece.started) {
    reject("unexpected rows of " + target.variable().name);
  }
  // Unique, so that the rule meets each row once; ascending makes that cheap to see.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!target.has_row(rows[i]) || (i > 0 && rows[i] <= rows[i - 1])) {
      reject(fmt::format("row {} of {} is not in piece {}, or not in ascending order", rows[i],
                         target.variable().name, target.where().id));
    }
  }
  piece.rows.assign(rows.begin(), rows.end());
  start(position, piece);
}

IncomingPiece& IncomingStep::find(const FrameHeader& header) {
  check_step(std::int64_t(header.step), MessageType::kChunk);
  const std::size_t position = shard_.position(header.id);
  IncomingPiece& piece = pieces_[position];
  if (!piece.started) {
    if (shard_.at(position).variable().sparse) reject("a contribution of rows without their ids");
    start(position, piece);
    make_room(position, piece);
  }
  const std::size_t bytes = chunk_bytes(header);
  if (bytes == 0 || piece.shared || header.offset != piece.received ||
      bytes > piece.expected - piece.received || bytes % sizeof(float) != 0) {
    reject(fmt::format("chunk of {} bytes at {} of piece {}, which has {} of {} bytes", bytes,
                       header.offset, header.id, piece.received, piece.expected));
  }
  return piece;
}

// Of float32.
std::size_t IncomingStep::chunk_bytes(const FrameHeader& header) const {
  return std::size_t(header.payload_bytes) * (rounded_ ? 2 : 1);
}

std::span<std::byte> IncomingStep::chunk_of(const IncomingPiece& piece,
                                            const FrameHeader& header) const {
  return piece.memory.span().subspan(piece.applied ? 0 : header.offset, chunk_bytes(header));
}

std::span<std::byte> IncomingStep::place(const FrameHeader& header) {
  const IncomingPiece& piece = find(header);
  if (piece.applied && chunk_bytes(header) > kChunkBytes) {
    reject(fmt::format("a chunk of {} bytes, at most {} are allowed", chunk_bytes(header),
                       kChunkBytes));
  }
  const std::span<std::byte> chunk = chunk_of(piece, header);
  return rounded_ ? place_of_rounded(chunk) : chunk;
}

IncomingPiece& IncomingStep::arrived(const FrameHeader& header) {
  IncomingPiece& piece = find(header);
  const std::span<std::byte> chunk = chunk_of(piece, header);
  if (rounded_) widen_in_place(chunk);
  piece.received += chunk.size();
  piece.chunk = chunk;
  return piece;
}

IncomingPiece& IncomingStep::arrived_in_shared_memory(std::span<const std::byte> memory,
                                                      const FrameHeader& header,
                                                      std::span<const std::int32_t> rows) {
  check_step(std::int64_t(header.step), MessageType::kContribution);
  const std::size_t position = shard_.position(header.id);
  IncomingPiece& piece = pieces_[position];
  const std::string& name = shard_.at(position).variable().name;
  if (piece.started) reject("a second contribution to " + name);
  if (shard_.at(position).variable().sparse) {
    take_rows(position, rows);
  } else {
    if (!rows.empty()) reject("rows of " + name + ", which is dense");
    start(position, piece);
  }
  if (header.offset % sizeof(float) != 0 || header.offset > memory.size() ||
      piece.expected > memory.size() - header.offset) {
    reject(fmt::format("{} bytes of {} at {} of a memory of {}", piece.expected, name,
                       header.offset, memory.size()));
  }
  piece.gradient = memory.subspan(header.offset, piece.expected);
  piece.received = piece.expected;
  piece.shared = true;
  if (!shard_.at(position).variable().sparse) piece.wanted = wanted_by(header.flags);
  return piece;
}

IncomingPiece& IncomingStep::whole(std::size_t position) {
  IncomingPiece& piece = pieces_[position];
  if (!piece.started && shard_.at(position).bytes() == 0) {
    start(position, piece);
    make_room(position, piece);
  }
  if (!piece.started || piece.received != piece.expected) {
    reject(fmt::format("step {} ends with {} of {} bytes for piece {}", step_, piece.received,
                       piece.expected, shard_.at(position).where().id));
  }
  return piece;
}

IncomingStep::~IncomingStep() {
  for (std::size_t position = 0; position < pieces_.size(); ++position) applied(position);
}

void IncomingStep::applied(std::size_t position) {
  if (std::exchange(pieces_[position].under_way, false)) shard_.at(position).end_contribution();
}

void IncomingStep::end() {
  for (std::size_t position = 0; position < pieces_.size(); ++position) {
    applied(position);
    pieces_[position].started = false;
  }
  open_ = false;
}

}  // namespace paceline
