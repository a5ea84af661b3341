// How a matrix product is cut into tiles for a pool's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/gemm.h"

namespace paceline {

constexpr std::int64_t kTileAlign = 16;  // a vector of float32: no tile ends within one

struct TileRange {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

/// Returns range i of `parts` of [0, size); all ends but the last are multiples of `align`.
TileRange tile_range(std::int64_t size, std::int64_t parts, std::int64_t i,
                     std::int64_t align = kTileAlign);

/// Each tile is where a range of the result's rows meets a range of its columns.
struct TileGrid {
  std::vector<TileRange> rows, columns;
  bool panels = false;  // handing over each row of tiles by itself is worthwhile
  bool whole_columns =
      false;  // one thread makes all tiles of some columns, since it has read their part of B
  std::size_t tiles() const { return rows.size() * columns.size(); }
};

/// Returns one tile for one thread, or if the product is too small to wake another thread.
/// Otherwise there are some tiles for each thread if the sides allow it, the last ones narrower, so
/// that the others wait little for a late thread. A large weight's gradient (A transposed) that is
/// not deep is cut into panels of whole rows, each small enough to stay in the threads' shared
/// cache. If a thread's own cache holds a packed B, all threads read it: each has whole rows, if
/// they are not too few. `reads_in_place` is the result of onednn_reads_in_place().
TileGrid choose_tiles(const GemmShape& shape, int threads, bool reads_in_place = false);

}  // namespace paceline
