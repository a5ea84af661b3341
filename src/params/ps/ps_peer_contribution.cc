// How a contribution that has arrived is applied, and answered.
#include <algorithm>

#include "base/denormals.h"
#include "params/ps/ps_driver.h"
#include "params/ps/ps_peer.h"

namespace paceline {

template <typename F>
void PsPeer::timed_apply(std::size_t position, F&& apply) {
  const TimelineScope event(driver_.timeline(), driver_.label(position));
  const TimePoint began = driver_.now();
  const FlushDenormals flush;
  ShardPiece::take_lock_wait();
  apply();
  const Duration applied = driver_.now() - began - ShardPiece::take_lock_wait();
  driver_.account().add_apply(std::max(Duration(0), applied));
}

ReplyBlocks::Lent PsPeer::apply_range(std::size_t position, std::size_t offset,
                                      std::span<const std::byte> gradient) {
  ShardPiece& piece = shard().at(position);
  ReplyBlocks::Lent block = replies_.take(gradient.size());
  if (incoming_->counts()) {
    timed_apply(position, [&] {
      piece.apply(incoming_->rule_step(position), offset, gradient, block->span());
    });
  } else {
    piece.copy(offset, block->span());
  }
  return block;
}

void PsPeer::answer(std::size_t position, std::size_t offset, ReplyBlocks::Lent values) {
  ShardPiece& piece = shard().at(position);
  const FrameHeader header{
      .id = piece.where().id, .offset = offset, .step = std::uint64_t(incoming_->step())};
  replies_.send_block(MessageType::kValues, header, replies_.rounded(piece, std::move(values)));
}

// The copy is made for the first worker step that asks for it.
void PsPeer::renew_copy(std::size_t position, std::uint64_t step) {
  ShardPiece& piece = shard().at(position);
  if (copy_ == nullptr) {
    copy_ = SharedMemory::create(shard().values()->size());
    if (!replies_.share(kMemoryOfCopy, copy_)) fail("a copy in memory, which is not shared");
  }
  piece.copy(0, place_in_copy(position));
  replies_.tell(MessageType::kCopied, piece.where().id, step);
}

std::span<std::byte> PsPeer::place_in_copy(std::size_t position) {
  if (copy_ == nullptr) fail("a copy that was not asked for cannot be renewed");
  return shard().place_of(position, copy_->bytes());
}

void PsPeer::apply_dense(std::size_t position) {
  const std::span<const std::byte> gradient = incoming_->piece(position).gradient;
  const WantedValues wanted = incoming_->part(position).wanted;
  if (wanted != WantedValues::kInFrames) {
    std::span<std::byte> copy;
    if (wanted == WantedValues::kInItsCopy) copy = place_in_copy(position);
    return apply_unanswered(position, 0, gradient, copy);
  }
  if (shard().at(position).variable().rule.whole()) return apply_and_answer_whole(position);
  for (const Cut cut : byte_cuts(gradient.size())) {
    answer(position, cut.begin,
           apply_range(position, cut.begin, gradient.subspan(cut.begin, cut.size)));
  }
}

void PsPeer::apply_unanswered(std::size_t position, std::size_t offset,
                              std::span<const std::byte> gradient, std::span<std::byte> copy) {
  ShardPiece& piece = shard().at(position);
  if (!incoming_->counts()) return piece.copy(offset, copy);
  timed_apply(position,
              [&] { piece.apply(incoming_->rule_step(position), offset, gradient, copy); });
}

void PsPeer::apply_and_answer_whole(std::size_t position) {
  ShardPiece& piece = shard().at(position);
  const std::span<const std::byte> gradient = incoming_->piece(position).gradient;
  if (incoming_->counts()) {
    timed_apply(position, [&] { piece.apply(incoming_->rule_step(position), 0, gradient, {}); });
  }
  for (const Cut cut : byte_cuts(gradient.size())) {
    ReplyBlocks::Lent block = replies_.take(cut.size);
    piece.copy(cut.begin, block->span());
    answer(position, cut.begin, std::move(block));
  }
}

void PsPeer::apply_whole(std::size_t position) {
  if (!incoming_->take_whole(position)) return;
  ShardPiece& piece = shard().at(position);
  const IncomingPiece& incoming = incoming_->piece(position);
  if (!piece.variable().sparse) {
    apply_dense(position);
  } else if (incoming_->counts() && !incoming.rows.empty()) {
    timed_apply(position, [&] {
      piece.apply_rows(incoming_->rule_step(position), incoming.rows,
                       reinterpret_cast<const float*>(incoming.gradient.data()));
    });
  }
  incoming_->applied(position);
  if (incoming_->part(position).shared) {
    replies_.tell(MessageType::kTaken, piece.where().id, std::uint64_t(incoming_->step()));
  }
}

}  // namespace paceline
