#include "params/ps/incoming_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/variable_arrays.h"
#include "params/wire/rounded_floats.h"

namespace paceline {

IncomingStep::IncomingStep(Shard& shard, const ContributionForm& wire)
    : shard_(shard),
      wire_(wire),
      assembly_(assembly_targets(shard.variables(), shard.all_pieces(), shard.ps())),
      pieces_(shard.size()) {}

IncomingStep::~IncomingStep() {
  for (std::size_t position = 0; position < pieces_.size(); ++position) applied(position);
}

void IncomingStep::begin(std::int64_t step, const StepBegin& begin, Fate fate,
                         bool must_be_finite) {
  if (begin.learning_rates.size() != shard_.variables().size()) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[ps] {} learning rates for {} variables", begin.learning_rates.size(),
                            shard_.variables().size()));
  }
  assembly_.begin(step, begin.clipped, fate);
  begin_ = begin;
  clip_scale_ = 1;
  must_be_finite_ = must_be_finite;
  skipped_ = false;
}

void IncomingStep::clip(std::int64_t step, const StepClip& clip) {
  assembly_.check_step(step, MessageType::kClip);
  assembly_.clip_known();
  clip_scale_ = clip.scale;
}

RuleStep IncomingStep::rule_step(std::size_t position) const {
  const ShardPiece& piece = shard_.at(position);
  return {.learning_rate = begin_.learning_rates[std::size_t(piece.where().variable)],
          .clip_scale = clip_scale_,
          .weight_decay = piece.variable().weight_decay,
          .count = pieces_[position].count,
          .average_decay = average_decay_at(piece.variable(), pieces_[position].count),
          .must_be_finite = must_be_finite_};
}

// Returns false when the piece has already begun in this step.
bool IncomingStep::begin_piece(std::size_t position) {
  IncomingPiece& piece = pieces_[position];
  if (std::exchange(piece.begun, true)) return false;
  if (counts()) {
    piece.count = shard_.at(position).begin_contribution();
    piece.under_way = true;
  }
  piece.gradient = {};
  return true;
}

void IncomingStep::make_room(std::size_t position) {
  if (!begin_piece(position)) return;
  IncomingPiece& piece = pieces_[position];
  const std::size_t expected = part(position).expected;
  const bool all = !assembly_.applies_chunks(position);
  const std::size_t bytes = all ? expected : std::min(expected, kChunkBytes);
  if (piece.memory.size() < bytes) piece.memory = Buffer(bytes);
  if (all) piece.gradient = piece.memory.span().first(bytes);
}

void IncomingStep::set_rows(std::size_t position, std::int64_t step,
                            std::span<const std::int32_t> rows) {
  assembly_.check_step(step, MessageType::kRowIds);
  assembly_.rows(position, rows);
  pieces_[position].rows.assign(rows.begin(), rows.end());
  make_room(position);
}

std::size_t IncomingStep::find(const FrameHeader& header) {
  assembly_.check_step(std::int64_t(header.step), MessageType::kChunk);
  const std::size_t position = shard_.position(header.id);
  assembly_.expect_chunk(position, header.offset, chunk_bytes(position, header), header.flags);
  make_room(position);
  return position;
}

// Returns how many bytes of float32 the chunk stands for. If only the largest numbers travel, every
// frame but the last must be of a whole chunk: otherwise a short chunk could take as many bytes as
// a long one, and the two could not be told apart.
std::size_t IncomingStep::chunk_bytes(std::size_t position, const FrameHeader& header) const {
  if (wire_.kept > 0) {
    const StepAssembly::Part& part = this->part(position);
    const std::size_t expected = part.started ? part.expected : shard_.at(position).bytes();
    const std::size_t bytes = std::min(expected - std::min(expected, header.offset), kChunkBytes);
    if (travelling_bytes(bytes, wire_) == header.payload_bytes) return bytes;
  } else if (const auto bytes = float_bytes(header.payload_bytes, wire_.type)) {
    return *bytes;
  }
  throw Error(ErrorCode::kDataLoss,
              fmt::format("[ps] a chunk of {} bytes holds no whole number", header.payload_bytes));
}

std::span<std::byte> IncomingStep::chunk_of(std::size_t position, const FrameHeader& header) const {
  const std::size_t offset = assembly_.applies_chunks(position) ? 0 : header.offset;
  return pieces_[position].memory.span().subspan(offset, chunk_bytes(position, header));
}

std::span<std::byte> IncomingStep::place(const FrameHeader& header) {
  const std::span<std::byte> chunk = chunk_of(find(header), header);
  return place_of_rounded(chunk, wire_);
}

StepAssembly::Arrival IncomingStep::arrived(std::size_t position, const FrameHeader& header) {
  find(header);
  const std::span<std::byte> chunk = chunk_of(position, header);
  widen_in_place(chunk, wire_);
  pieces_[position].chunk = chunk;
  return assembly_.chunk(position, chunk.size());
}

StepAssembly::Arrival IncomingStep::arrived_in_shared_memory(std::size_t position,
                                                             std::span<const std::byte> memory,
                                                             const FrameHeader& header,
                                                             std::span<const std::int32_t> rows) {
  assembly_.check_step(std::int64_t(header.step), MessageType::kContribution);
  const StepAssembly::Arrival arrival =
      assembly_.shared(position, memory.size(), header.offset, header.flags, rows);
  IncomingPiece& piece = pieces_[position];
  piece.rows.assign(rows.begin(), rows.end());
  begin_piece(position);
  piece.gradient = memory.subspan(header.offset, part(position).expected);
  return arrival;
}

void IncomingStep::check_whole(std::size_t position) {
  assembly_.check_whole(position);
  make_room(position);
}

void IncomingStep::applied(std::size_t position) {
  if (std::exchange(pieces_[position].under_way, false)) shard_.at(position).end_contribution();
}

void IncomingStep::end() {
  for (std::size_t position = 0; position < pieces_.size(); ++position) {
    applied(position);
    pieces_[position].begun = false;
  }
  assembly_.end();
  kept_ = false;
}

}  // namespace paceline
