#include "kernels/cpu/tile_blocks.h"

#include <algorithm>

#include "base/buffer.h"
#include "kernels/cpu/tile_grid.h"

namespace paceline {
namespace {

// Rows of this many floats, 2 KB. Rows 4 KB apart are read at 0.45 of the speed of closer rows,
// rows 2 KB apart at 0.65, and rows 1 KB apart at 0.9.
constexpr std::int64_t kAliasingRow = 512;
// An element that is used fewer times costs more to copy than to read in place.
constexpr std::int64_t kLeastUses = 24;
// The copies of both operands of a block, and its part of the result, stay in a second-level cache
// of 512 KB.
constexpr std::int64_t kRows = 240, kColumns = 384, kDepth = 128;

bool aliases(std::int64_t ld) { return ld % kAliasingRow == 0; }

// Returns the size of equal parts (the last may be smaller), none larger than `most`.
std::int64_t part_of(std::int64_t size, std::int64_t most) {
  const std::int64_t parts = (size + most - 1) / most;
  return round_up((size + parts - 1) / parts, kTileAlign);
}

}  // namespace

std::int64_t copied_ld(std::int64_t columns) {
  const std::int64_t ld = round_up(columns, kTileAlign);
  return ld % (kAliasingRow / 4) == 0 ? ld + kTileAlign : ld;
}

bool copied_by_avx2_code(std::int64_t rows, std::int64_t columns) {
  return 1.0 / double(rows) + 1.0 / double(columns) < 0.0038;
}

TileBlocks choose_blocks(const GemmShape& s, bool reads_in_place) {
  TileBlocks blocks{.rows = s.m, .columns = s.n, .depth = s.k};
  if (!reads_in_place || copied_by_avx2_code(s.m, s.n) || s.packed_b ||
      s.operands != DType::kFloat32)
    return blocks;
  blocks.copy_a = s.transpose_a && aliases(s.lda) && s.n >= kLeastUses;
  blocks.copy_b = !s.transpose_b && aliases(s.ldb) && s.m >= kLeastUses;
  if (blocks.copy_a) blocks.rows = part_of(s.m, kRows);
  if (blocks.copies()) {
    blocks.columns = part_of(s.n, kColumns);
    blocks.depth = part_of(s.k, kDepth);
  }
  return blocks;
}

void copy_rows(const void* from, std::int64_t ld, float* to, std::int64_t to_ld, std::int64_t rows,
               std::int64_t columns) {
  const auto* row = static_cast<const float*>(from);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(row + i * ld, columns, to + i * to_ld);
}

}  // namespace paceline
