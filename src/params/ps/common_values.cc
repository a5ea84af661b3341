// The connections of all workers send the same blocks, and the last connection that has sent a
// block gives it back. With 4 workers in rounds of mlp over TCP, a copy for each worker took a
// sixth of the time of two cores: with common blocks 23.5 steps/s became 26.4 (medians of four
// pairs of 6 s, by turns).
#include "params/ps/common_values.h"

#include <algorithm>

#include "params/wire/rounded_floats.h"

namespace paceline {

bool travels_rounded(const ShardPiece& piece, DType wire) {
  return wire != DType::kFloat32 && piece.variable().dtype == DType::kFloat32;
}

void round_values(ReplyBlocks::Block& block, DType wire, std::size_t values_at) {
  const std::span<std::byte> values = block.span().subspan(values_at);
  block.bytes = values_at + round_in_place(values, type_of_values(wire)).size();
}

const ReplyBlocks::Common& CommonValues::travelling_as(DType wire) {
  const auto found = std::ranges::find(made_, wire, &std::pair<DType, ReplyBlocks::Common>::first);
  if (found != made_.end()) return found->second;
  ReplyBlocks::Lent block = blocks_.take(part_.size);
  piece_.copy(part_.begin, block->span());
  if (travels_rounded(piece_, wire)) round_values(*block, wire);
  return made_.emplace_back(wire, std::move(block)).second;
}

}  // namespace paceline
