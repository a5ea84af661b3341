#include "kernels/cpu/tile_grid.h"

#include <algorithm>

namespace paceline {

namespace {

constexpr double kLeastFlops = 2e6;  // about 20 µs, some times what waking a thread costs
constexpr std::int64_t kTilesAThread = 4;
// Narrower tiles fall far from the machine's peak, and wider ones by a tenth, beyond what the
// second-level cache holds (measured on shapes of the mlp and ptb models). A packed B is read in
// order: its tiles may be narrower, and as wide as they are.
constexpr std::int64_t kLeastRows = 64, kLeastColumns = 128, kLeastPackedColumns = 96;
constexpr std::int64_t kMostColumns = 1024;
constexpr std::int64_t kWide = 4;  // times as many columns as rows
// With fewer rows, or where B is beyond the second-level cache (1.7 M elements: a tenth slower),
// tiles that share no part of B are faster.
constexpr std::int64_t kLeastPackedRows = 8, kMostSharedElements = 1 << 18;

// As many parts as the side allows, alike for all threads where there are enough.
std::int64_t parts_of(std::int64_t side, std::int64_t least, std::int64_t most, int threads) {
  const std::int64_t parts = std::clamp<std::int64_t>(side / least, 1, most);
  return parts < threads ? parts : parts / threads * threads;
}

// What the first side cannot give, down to narrow tiles: better than an idle thread.
std::int64_t rest_of(std::int64_t side, std::int64_t first, std::int64_t most, int threads) {
  if (first >= threads) return 1;
  const std::int64_t wanted = (threads + first - 1) / first;
  return std::clamp<std::int64_t>(std::min(wanted, side / kLeastRows), 1, most / first);
}

// A result larger than the shared cache, in panels of 4 MB: a smaller one stays there anyway, and
// lower tiles cost more than handing over from the cache saves.
constexpr std::int64_t kPanelElements = 1 << 20, kLeastPanels = 4;

std::int64_t panels_of(const GemmShape& s, int threads) {
  if (!s.transpose_a || s.transpose_b || s.accumulate || s.ldc != s.n) return 0;
  const std::int64_t cached = (s.m * s.n + kPanelElements - 1) / kPanelElements;
  const std::int64_t panels = (cached + threads - 1) / threads * threads;
  return cached < kLeastPanels || s.m / panels < kLeastRows ? 0 : panels;
}

// As wide as the cache allows, or as many as the threads want.
std::int64_t columns_of(const GemmShape& s, std::int64_t most, int threads) {
  const std::int64_t cached = (s.n + kMostColumns - 1) / kMostColumns;
  const std::int64_t least = s.packed_b ? kLeastPackedColumns : kLeastColumns;
  if (threads == 1) return s.packed_b ? 1 : cached;
  const std::int64_t parts = parts_of(s.n, least, most, threads);
  return parts < threads ? parts : std::max(parts, (cached + threads - 1) / threads * threads);
}

bool shares_packed(const GemmShape& s, int threads) {
  return s.packed_b && s.k * s.n <= kMostSharedElements && s.m >= threads * kLeastPackedRows;
}

}  // namespace

TileGrid choose_tiles(const GemmShape& s, int threads) {
  const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k);
  const double affordable = std::min(flops / kLeastFlops, double(threads * kTilesAThread));
  const std::int64_t most = std::int64_t(affordable);
  if (most < 2) return {};
  if (shares_packed(s, threads)) return {threads, 1};
  // oneDNN copies a transposed B within each tile: one more tile than there are threads costs a
  // copy. Each thread copies its part of a wide B (mlp's: a tenth faster), else all columns belong
  // into one tile.
  if (s.transpose_b && !s.packed_b) {
    if (threads == 1) return {};
    if (s.n >= kWide * s.m) return {1, rest_of(s.n, 1, most, threads)};
    const std::int64_t rows =
        parts_of(s.m, kLeastRows, std::min<std::int64_t>(most, threads), threads);
    return {rows, rest_of(s.n, rows, most, threads)};
  }
  if (const std::int64_t panels = panels_of(s, threads); panels > 0) {
    return {panels, (s.n + kMostColumns - 1) / kMostColumns, true};
  }
  const std::int64_t columns = columns_of(s, most, threads);
  return {rest_of(s.m, columns, most, threads), columns};
}

TileRange tile_range(std::int64_t size, std::int64_t parts, std::int64_t i, std::int64_t align) {
  const auto end_of = [&](std::int64_t part) {
    return part == parts ? size : size * part / parts / align * align;
  };
  return {end_of(i), end_of(i + 1)};
}

}  // namespace paceline
