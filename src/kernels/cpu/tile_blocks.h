// The blocks in which oneDNN computes a tile of a product, and the copies for each block.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm.h"

namespace paceline {

/// Returns the row stride, in elements, of a copy with this many columns. Rows with this stride
/// share no cache sets.
std::int64_t copied_ld(std::int64_t columns);

/// True if oneDNN's code for AVX2 copies both operands of a tile with this many rows and columns
/// into its own layout.
bool copied_by_avx2_code(std::int64_t rows, std::int64_t columns);

/// Which operands of a tile are copied, block by block, before oneDNN reads them, and the extents
/// of a block. If nothing is copied, as with a packed B, the block is the whole tile.
///
/// oneDNN reads A across its rows if A is transposed, and B if B is not transposed. Its code for
/// AVX2 reads such operands where they lie, unless the tile is large in both directions. Rows that
/// lie a multiple of 2 KB apart then share a few sets of the caches and evict each other (4 KB
/// apart: half the speed on AMD Zen 3). oneDNN's code for AVX-512 copies such operands itself, and
/// its code for SSE4 copies all operands (oneDNN 2.6).
struct TileBlocks {
  bool copy_a = false, copy_b = false;
  std::int64_t rows, columns, depth;

  bool copies() const { return copy_a || copy_b; }
  /// The strides of the copies of one block. A copied A is transposed if A is.
  std::int64_t lda() const { return copied_ld(rows); }
  std::int64_t ldb() const { return copied_ld(columns); }
  std::int64_t elements_of_a() const { return copy_a ? depth * lda() : 0; }
  std::int64_t elements_of_b() const { return copy_b ? depth * ldb() : 0; }
};

/// `reads_in_place` is the result of onednn_reads_in_place().
TileBlocks choose_blocks(const GemmShape& tile, bool reads_in_place);

/// Copies rows of float32 that lie `ld` elements apart to rows that lie `to_ld` apart.
void copy_rows(const void* from, std::int64_t ld, float* to, std::int64_t to_ld, std::int64_t rows,
               std::int64_t columns);

}  // namespace paceline
