// How a matrix product is cut into tiles for the threads of a pool.
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

/// Range i of `parts` of [0, size), whose ends are multiples of `align` but for the last.
TileRange tile_range(std::int64_t size, std::int64_t parts, std::int64_t i,
                     std::int64_t align = kTileAlign);

/// Tiles are where a range of rows of the result and a range of columns meet.
struct TileGrid {
  std::vector<TileRange> rows, columns;
  bool panels = false;  // the rows of tiles are worth handing over one by one
  bool whole_columns =
      false;  // all tiles of some columns are for one thread, which has read their B
  std::size_t tiles() const { return rows.size() * columns.size(); }
};

/// One tile on one thread, or when the product is too small to wake another; else some for each
/// thread where the sides allow it, the last ones narrower, so that a thread that is late leaves
/// the others little to wait for. A large weight's gradient (A transposed) that is not deep is cut
/// into panels of whole rows, each small enough to stay in the cache that threads share. A packed B
/// that a thread's own cache holds is read by all: each has whole rows, if they are not too few.
/// `reads_in_place`: what onednn_reads_in_place() says.
TileGrid choose_tiles(const GemmShape& shape, int threads, bool reads_in_place = false);

}  // namespace paceline
