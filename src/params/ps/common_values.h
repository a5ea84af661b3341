// A part of a piece's values, for several workers.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "params/protocol/frame_cuts.h"
#include "params/ps/reply_blocks.h"
#include "params/shard/shard_piece.h"

namespace paceline {

/// True when the piece's values travel in fewer bytes than as float32.
bool travels_rounded(const ShardPiece& piece, DType wire);
/// Rounds the float32 numbers of the block, from byte `values_at` on, to the type
/// type_of_values(wire), and shortens the block.
void round_values(ReplyBlocks::Block& block, DType wire, std::size_t values_at = 0);

/// The values of a part of a piece. They are copied when a worker first asks for them, once for
/// each type in which they travel. The piece must not change before the last worker has asked.
class CommonValues {
 public:
  CommonValues(ShardPiece& piece, Cut part, ReplyBlocks& blocks)
      : piece_(piece), part_(part), blocks_(blocks) {}

  ShardPiece& piece() const { return piece_; }
  Cut part() const { return part_; }
  bool is_whole() const { return part_.size == piece_.bytes(); }
  const ReplyBlocks::Common& travelling_as(DType wire);

 private:
  ShardPiece& piece_;
  const Cut part_;
  ReplyBlocks& blocks_;
  std::vector<std::pair<DType, ReplyBlocks::Common>> made_;
};

}  // namespace paceline
