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

/// Cuts [0, size) into `parts` ranges and returns range i. All ends but the last are multiples of
/// `align`.
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

/// Returns one tile if the product is too small to wake another thread. One thread gets tiles about
/// as wide as its cache holds. Several threads get some tiles each if the sides allow it, the last
/// ones narrower, so that the other threads wait little for a late one. The gradient of a large
/// weight (A is transposed) that is not deep is cut into panels of whole rows, each small enough to
/// stay in the threads' shared cache. If a packed B fits into a thread's own cache, all threads
/// read all of it, and each computes whole rows, if there are enough rows. `reads_in_place` is the
/// result of onednn_reads_in_place().
TileGrid choose_tiles(const GemmShape& shape, int threads, bool reads_in_place = false);

}  // namespace paceline
