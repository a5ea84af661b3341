#include "params/shard/layout.h"

#include "base/buffer.h"
#include "base/row_count.h"
#include "params/variable_arrays.h"

namespace paceline {

ShardLayout shard_layout(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                         int ps) {
  ShardLayout layout;
  for (const Piece& piece : pieces) {
    const VariableSpec& variable = variables[std::size_t(piece.variable)];
    const bool whole = piece.rows == row_count(variable.shape);
    if (piece.ps == ps && !whole && begins_at_page(variable, piece)) {
      layout.bytes = round_up(layout.bytes, kSplitPageBytes);
    }
    layout.offsets.push_back(layout.bytes);
    if (piece.ps != ps) continue;
    const std::size_t bytes = piece_bytes(variable, piece);
    layout.bytes += round_up(bytes, kBufferAlignment);
  }
  return layout;
}

}  // namespace paceline
