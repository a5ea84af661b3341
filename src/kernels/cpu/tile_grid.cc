// oneDNN runs on one thread per call. A product is cut into tiles, which the threads of our pool
// claim. Beside one busy process, a GEMM slowed from 14 to 27 ms on oneDNN's own OpenMP threads,
// and from 12.6 to 19.6 ms on claimed tiles. Kernels and rules of one process share these threads.
#include "kernels/cpu/tile_grid.h"

#include <algorithm>

#include "base/buffer.h"
#include "kernels/cpu/tile_blocks.h"

namespace paceline {

namespace {

constexpr double kLeastFlops = 2e6;  // about 20 µs, several times the cost of waking a thread
constexpr std::int64_t kTilesAThread = 4;
// Tiles with fewer rows or columns are far slower than the machine's peak. Tiles wider than the
// second-level cache holds are a tenth slower (measured on shapes of the mlp and ptb models). A
// packed B is read in order, so its tiles may be narrower, and wide ones are not slower.
constexpr std::int64_t kLeastRows = 64, kLeastColumns = 128, kLeastPackedColumns = 96;
constexpr std::int64_t kNarrowColumns = 192;
constexpr std::int64_t kWide = 4;  // times as many columns as rows
// With fewer rows for each thread, or with a B that is larger than the second-level cache, tiles
// that share no part of B are faster (by a tenth for a B of 1.7 M elements).
constexpr std::int64_t kLeastPackedRows = 8, kMostSharedElements = 1 << 18;

// oneDNN's kernels make 48 columns of the result at a time (other widths are a fortieth slower),
// and pass over the columns again for each block of 384 rows: with few rows that pass is wasted.
constexpr std::int64_t kKernelColumns = 48, kMostColumns = 21 * kKernelColumns;
constexpr std::int64_t kLeastShared = 5 * kKernelColumns;  // fewer: the last tiles are too narrow
constexpr std::int64_t kRowBlock = 384, kFewRows = 96;
// If 1/m + 1/n of a tile m x n is below this, oneDNN first copies the operands into its own layout.
// With deep operands, this is a quarter faster.
constexpr double kCopiedSides = 0.00196;
constexpr std::int64_t kLeastCopiedDepth = 512;

std::vector<TileRange> equal_parts(std::int64_t size, std::int64_t parts, std::int64_t align) {
  std::vector<TileRange> ranges;
  for (std::int64_t i = 0; i < parts; ++i) ranges.push_back(tile_range(size, parts, i, align));
  return ranges;
}

// Rows of a transposed A are columns in memory, so their ranges are aligned.
std::vector<TileRange> rows_of(const GemmShape& s, std::int64_t parts) {
  return equal_parts(s.m, parts, s.transpose_a ? kTileAlign : 1);
}

TileGrid equal_tiles(const GemmShape& s, std::int64_t rows, std::int64_t columns) {
  return {.rows = rows_of(s, rows), .columns = equal_parts(s.n, columns, kTileAlign)};
}

// Returns as many parts as the side allows; if possible, equally many for each thread.
std::int64_t parts_of(std::int64_t side, std::int64_t least, std::int64_t most, int threads) {
  const std::int64_t parts = std::clamp<std::int64_t>(side / least, 1, most);
  return parts < threads ? parts : parts / threads * threads;
}

// Cuts the second side to get the tiles that the first side cannot give, even if they get narrow: a
// narrow tile is better than an idle thread.
std::int64_t rest_of(std::int64_t side, std::int64_t first, std::int64_t most, int threads) {
  if (first >= threads) return 1;
  const std::int64_t wanted = (threads + first - 1) / first;
  return std::clamp<std::int64_t>(std::min(wanted, side / kLeastRows), 1, most / first);
}

// Returns the number of parts if each is about as wide as the cache holds.
std::int64_t cached_parts(std::int64_t columns) {
  return std::max<std::int64_t>(1, (columns + kMostColumns / 2) / kMostColumns);
}

// A result larger than the shared cache is computed in panels of 4 MB, which are handed over from
// the cache. Panels make tiles lower, which costs more than handing over from the cache saves if
// the result is smaller, and stays in the cache anyway, or if the product is deep.
constexpr std::int64_t kPanelElements = 1 << 20, kMostPanelElements = 2 * kPanelElements;
constexpr std::int64_t kLeastPanels = 4, kMostPanelDepth = 256;

std::int64_t panels_of(const GemmShape& s, int threads) {
  if (!s.transpose_a || s.transpose_b || s.accumulate || s.ldc != s.n) return 0;
  if (s.k > kMostPanelDepth) return 0;
  const std::int64_t cached = (s.m * s.n + kPanelElements - 1) / kPanelElements;
  const std::int64_t panels = round_up(cached, threads);
  return cached < kLeastPanels || s.m / panels < kLeastRows ? 0 : panels;
}

// If oneDNN reads operands in place, makes panels as high as oneDNN's blocks of rows, so that it
// copies their operands (mlp: 0.85 of the time).
TileGrid panel_tiles(const GemmShape& s, std::int64_t panels, int threads, bool reads_in_place) {
  const std::int64_t high = round_up((s.m + kRowBlock - 1) / kRowBlock, threads);
  const bool cached = s.m / high * s.n <= kMostPanelElements;
  TileGrid grid = reads_in_place && cached && copied_by_avx2_code(s.m / high, s.n)
                      ? equal_tiles(s, high, 1)
                      : equal_tiles(s, panels, cached_parts(s.n));
  grid.panels = true;
  return grid;
}

bool shares_packed(const GemmShape& s, int threads) {
  return s.packed_b && s.k * s.n <= kMostSharedElements && s.m >= threads * kLeastPackedRows;
}

// If oneDNN reads a packed B in place, narrow tiles are faster, since their rows of B lie close
// together (1,500 deep and 6,000 wide: 0.75 of the time). Returns equally many tiles for each
// thread, if they are no narrower than kLeastPackedColumns then.
TileGrid packed_tiles(const GemmShape& s, std::int64_t most, int threads, bool reads_in_place) {
  const std::int64_t narrow = (s.n + kNarrowColumns - 1) / kNarrowColumns;
  const std::int64_t wide_enough = std::max(narrow, s.n / kLeastPackedColumns);
  const std::int64_t least = reads_in_place ? std::min(round_up(narrow, threads), wide_enough) : 1;
  if (threads == 1) return equal_tiles(s, 1, least);
  const std::int64_t columns = parts_of(s.n, kLeastPackedColumns, most, threads);
  return equal_tiles(s, rest_of(s.m, columns, most, threads), std::max(columns, least));
}

// oneDNN copies a transposed B within each tile, so one more tile than there are threads costs a
// copy. Each thread copies its part of a wide B (mlp: a tenth faster). Otherwise tiles have all
// columns if there are enough rows.
TileGrid transposed_tiles(const GemmShape& s, std::int64_t most, int threads) {
  if (threads == 1) return equal_tiles(s, 1, 1);
  if (s.n >= kWide * s.m) return equal_tiles(s, 1, rest_of(s.n, 1, most, threads));
  const std::int64_t rows =
      parts_of(s.m, kLeastRows, std::min<std::int64_t>(most, threads), threads);
  return equal_tiles(s, rows, rest_of(s.n, rows, most, threads));
}

// Returns the fewest columns with which oneDNN copies the operands of a tile; 0 if it never does,
// or the operands are not deep.
std::int64_t least_copied_columns(const GemmShape& s) {
  const double rest = kCopiedSides - 1.0 / double(s.m);
  if (rest <= 0 || s.k < kLeastCopiedDepth) return 0;
  return round_up(std::int64_t(1 / rest) + 1, kKernelColumns);
}

// Makes rounds of one tile for each thread. Tiles are at most as wide as the cache allows, and at
// most four fifths of a thread's share of the remaining columns, until this share is small. So the
// last rounds are narrow.
std::vector<TileRange> rounds_of(std::int64_t columns, int threads) {
  if (threads == 1) return equal_parts(columns, cached_parts(columns), kKernelColumns);
  std::vector<TileRange> ranges;
  for (std::int64_t begin = 0; begin < columns;) {
    const std::int64_t share = (columns - begin + threads - 1) / threads;
    const std::int64_t part = share < kLeastShared
                                  ? round_up(share, kTileAlign)
                                  : share * 4 / 5 / kKernelColumns * kKernelColumns;
    const std::int64_t width = std::min(part, kMostColumns);
    for (int i = 0; i < threads && begin < columns; ++i) {
      ranges.push_back({begin, std::min(begin + width, columns)});
      begin = ranges.back().end;
    }
  }
  return ranges;
}

TileGrid plain_tiles(const GemmShape& s, std::int64_t most, int threads) {
  const std::int64_t parts = parts_of(s.n, kLeastColumns, most, threads);
  if (parts < threads) return equal_tiles(s, rest_of(s.m, parts, most, threads), parts);
  if (const std::int64_t wide = least_copied_columns(s); wide > 0 && s.n >= wide * threads) {
    const std::int64_t columns =
        std::min(s.n / wide / threads * threads, round_up(cached_parts(s.n), threads));
    return {.rows = rows_of(s, 1), .columns = equal_parts(s.n, columns, kKernelColumns)};
  }
  const std::int64_t rest = s.m % kRowBlock;
  const bool uneven = s.m > kRowBlock && rest > 0 && rest < kFewRows;
  return {.rows = rows_of(s, uneven ? s.m / kRowBlock + 1 : 1),
          .columns = rounds_of(s.n, threads),
          .whole_columns = true};
}

}  // namespace

TileGrid choose_tiles(const GemmShape& s, int threads, bool reads_in_place) {
  const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k);
  const double affordable = std::min(flops / kLeastFlops, double(threads * kTilesAThread));
  const std::int64_t most = std::int64_t(affordable);
  if (most < 2) return equal_tiles(s, 1, 1);
  if (shares_packed(s, threads)) return equal_tiles(s, threads, 1);
  if (s.packed_b) return packed_tiles(s, most, threads, reads_in_place);
  if (s.transpose_b) return transposed_tiles(s, most, threads);
  if (const std::int64_t panels = panels_of(s, threads); panels > 0)
    return panel_tiles(s, panels, threads, reads_in_place);
  return plain_tiles(s, most, threads);
}

TileRange tile_range(std::int64_t size, std::int64_t parts, std::int64_t i, std::int64_t align) {
  const auto end_of = [&](std::int64_t part) {
    return part == parts ? size : size * part / parts / align * align;
  };
  return {end_of(i), end_of(i + 1)};
}

}  // namespace paceline
