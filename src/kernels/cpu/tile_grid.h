// How a matrix product is cut into tiles for the threads of a pool.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm.h"

namespace paceline {

/// Tiles along the rows and the columns of the result.
struct TileGrid {
  std::int64_t rows = 1, columns = 1;
  bool panels = false;  // the rows of tiles are worth handing over one by one
  std::int64_t tiles() const { return rows * columns; }
};

/// One tile on one thread, or when the product is too small to wake another; else between one and
/// four a thread where the sides allow it. A large weight's gradient (A transposed) is cut into
/// panels of whole rows, each small enough to stay in the cache that threads share. A packed B that
/// a thread's own cache holds is read by all: each has whole rows, if they are not too few.
TileGrid choose_tiles(const GemmShape& shape, int threads);

constexpr std::int64_t kTileAlign = 16;  // a vector of float32: no tile ends within one

/// Range i of `parts` of [0, size), whose ends are multiples of `align` but for the last.
struct TileRange {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};
TileRange tile_range(std::int64_t size, std::int64_t parts, std::int64_t i,
                     std::int64_t align = kTileAlign);

}  // namespace paceline
