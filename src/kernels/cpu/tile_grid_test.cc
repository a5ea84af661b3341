#include "kernels/cpu/tile_grid.h"

#include <gmock/gmock.h>

#include <tuple>
#include <vector>

#include "kernels/cpu/tile_blocks.h"

namespace paceline {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> sizes_of(const std::vector<TileRange>& ranges) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(ranges.size());
  for (const TileRange& range : ranges) sizes.push_back(range.size());
  return sizes;
}

TEST(TileGrid, OneThreadGetsTilesNoWiderThanTheCacheHolds) {
  const TileGrid grid = choose_tiles(GemmShape::packed(200, 3000, 200), 1);
  EXPECT_THAT(sizes_of(grid.rows), ElementsAre(200));
  EXPECT_THAT(sizes_of(grid.columns), ElementsAre(960, 1008, 1032));
  EXPECT_EQ(choose_tiles(GemmShape::packed(128, 4096, 4096), 1).tiles(),
            4U);  // without a narrow rest
  EXPECT_EQ(choose_tiles(GemmShape::packed(200, 800, 200), 1).tiles(), 1U);
  EXPECT_EQ(choose_tiles(GemmShape::packed(400, 4096, 200, false, true), 1).tiles(), 1U);
}

TEST(TileGrid, SeveralThreadsGetRoundsOfTilesTheLastOnesNarrow) {
  EXPECT_THAT(sizes_of(choose_tiles(GemmShape::packed(200, 800, 400, true), 2).columns),
              ElementsAre(288, 288, 112, 112));
  EXPECT_THAT(sizes_of(choose_tiles(GemmShape::packed(200, 10000, 200), 2).columns),
              ElementsAre(1008, 1008, 1008, 1008, 1008, 1008, 1008, 1008, 768, 768, 208, 192));
}

TEST(TileGrid, TilesAreWholeColumnsOfTheKernel) {
  for (const int threads : {2, 3, 8}) {
    const TileGrid grid = choose_tiles(GemmShape::packed(128, 30000, 256), threads);
    for (std::size_t i = 0; i + std::size_t(2 * threads) < grid.columns.size(); ++i) {
      EXPECT_EQ(grid.columns[i].size() % 48, 0) << i;
    }
  }
}

// 400 rows are a block of 384 rows and 16 more; instead, each tile gets 200 rows.
TEST(TileGrid, FewRowsBeyondABlockOfTheKernelAreSharedOutAndStayWithOneThread) {
  const TileGrid grid = choose_tiles(GemmShape::packed(400, 10000, 200), 2);
  EXPECT_THAT(sizes_of(grid.rows), ElementsAre(200, 200));
  EXPECT_TRUE(grid.whole_columns);
  EXPECT_EQ(choose_tiles(GemmShape::packed(384, 10000, 200), 2).rows.size(), 1U);
  EXPECT_EQ(choose_tiles(GemmShape::packed(700, 10000, 200), 2).rows.size(), 1U);
}

// 1/m + 1/n < 0.00196: tiles of 650 rows need 2,373 columns.
TEST(TileGrid, ADeepProductGetsTilesWideEnoughToBeCopied) {
  const GemmShape deep = GemmShape::packed(650, 10000, 700, true);
  EXPECT_THAT(sizes_of(choose_tiles(deep, 2).columns), ElementsAre(2496, 2496, 2496, 2512));
  EXPECT_EQ(choose_tiles(deep, 1).columns.size(), 4U);
  EXPECT_EQ(choose_tiles(deep, 5).columns.front().size(), 1008);  // not enough for all threads
  EXPECT_EQ(choose_tiles(GemmShape::packed(650, 10000, 400, true), 2).columns.front().size(), 1008);
  EXPECT_EQ(choose_tiles(GemmShape::packed(1500, 6000, 700, true), 2).columns.size(), 6U);
}

GemmShape with_packed_b(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmShape shape = GemmShape::packed(m, n, k, false, true);
  shape.packed_b = true;
  return shape;
}

TEST(TileGrid, APackedOperandIsCutByColumnsWhereRowsAreFew) {
  EXPECT_EQ(choose_tiles(with_packed_b(20, 200, 800), 3).columns.size(), 2U);
  EXPECT_EQ(choose_tiles(with_packed_b(20, 1600, 800), 4).columns.size(), 16U);
}

TEST(TileGrid, APackedOperandInTheCacheIsSharedByWholeRows) {
  const TileGrid grid = choose_tiles(with_packed_b(20, 200, 800), 2);
  EXPECT_EQ(grid.rows.size(), 2U);
  EXPECT_EQ(grid.columns.size(), 1U);
  EXPECT_EQ(choose_tiles(with_packed_b(64, 650, 2600), 2).rows.size(), 1U);  // too large
  EXPECT_EQ(choose_tiles(with_packed_b(64, 1500, 6000), 1).tiles(), 1U);
}
TEST(TileGrid, APackedOperandThatIsReadInPlaceIsCutNarrow) {
  EXPECT_EQ(choose_tiles(with_packed_b(64, 1500, 6000), 1, true).columns.size(), 8U);
  EXPECT_EQ(choose_tiles(with_packed_b(20, 1500, 6000), 3, true).columns.size(), 12U);
  EXPECT_EQ(choose_tiles(with_packed_b(20, 200, 800), 2, true).columns.size(), 1U);  // shared
}

TEST(TileGrid, ASmallProductIsNotCut) {
  EXPECT_EQ(choose_tiles(GemmShape::packed(32, 256, 128), 8).tiles(), 1U);
}

TEST(TileGrid, ATransposedOperandsTilesAreBetweenOneAndFourAThread) {
  for (const int threads : {2, 3, 8, 16}) {
    const auto shape = GemmShape::packed(2048, 4096, 512, false, true);
    const std::size_t tiles = choose_tiles(shape, threads).tiles();
    EXPECT_GE(tiles, std::size_t(threads));
    EXPECT_LE(tiles, std::size_t(4 * threads));
    EXPECT_EQ(tiles % std::size_t(threads), 0U);
  }
}

void expect_cover_once(const std::vector<TileRange>& ranges, std::int64_t size) {
  std::int64_t end = 0;
  for (const TileRange& range : ranges) {
    EXPECT_EQ(range.begin, end);
    EXPECT_GT(range.size(), 0);
    end = range.end;
  }
  EXPECT_EQ(end, size);
}

TEST(TileGrid, TilesCoverTheResultOnce) {
  for (const int threads : {1, 2, 3, 16}) {
    for (const auto& [m, n, k] :
         {std::tuple{400, 10000, 200}, {650, 10007, 700}, {130, 131, 999}}) {
      const TileGrid grid = choose_tiles(GemmShape::packed(m, n, k), threads);
      expect_cover_once(grid.rows, m);
      expect_cover_once(grid.columns, n);
    }
  }
}

TEST(TileGrid, TilesOfAPackedOperandCoverTheResultOnce) {
  for (const int threads : {1, 2, 3, 8, 16}) {
    for (const auto& [m, n, k] : {std::tuple{20, 200, 800},
                                  {20, 1600, 800},
                                  {10000, 32, 100},
                                  {8, 3200, 100},
                                  {64, 1500, 6000},
                                  {650, 209, 700}}) {
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << ", " << threads << ", " << in_place);
        const TileGrid grid = choose_tiles(with_packed_b(m, n, k), threads, in_place);
        expect_cover_once(grid.rows, m);
        expect_cover_once(grid.columns, n);
      }
    }
  }
}

TEST(TileGrid, RangesCoverEverythingOnce) {
  std::vector<TileRange> ranges;
  ranges.reserve(7);
  for (int i = 0; i < 7; ++i) ranges.push_back(tile_range(1001, 7, i));
  expect_cover_once(ranges, 1001);
}

TEST(TileGrid, ATransposedOperandIsCutByRowsOnceAThread) {
  const TileGrid grid = choose_tiles(GemmShape::packed(400, 200, 10000, false, true), 2);
  EXPECT_EQ(grid.rows.size(), 2U);
  EXPECT_EQ(grid.columns.size(), 1U);
}

TEST(TileGrid, AWideTransposedOperandIsCutByColumnsOnceAThread) {
  for (const int threads : {2, 3, 8}) {
    const TileGrid grid = choose_tiles(GemmShape::packed(128, 4096, 4096, false, true), threads);
    EXPECT_EQ(grid.rows.size(), 1U);
    EXPECT_EQ(grid.columns.size(), std::size_t(threads));
  }
}

TEST(TileGrid, AFlatProductIsCutByItsOtherSide) {
  const TileGrid grid = choose_tiles(GemmShape::packed(20, 200, 800, false, true), 2);
  EXPECT_EQ(grid.rows.size(), 1U);
  EXPECT_EQ(grid.columns.size(), 2U);
}

TEST(TileGrid, ALargeWeightsGradientIsCutIntoPanelsForAllThreads) {
  const GemmShape gradient = GemmShape::packed(4096, 4096, 128, true);
  for (const int threads : {1, 3, 16}) {
    const TileGrid grid = choose_tiles(gradient, threads);
    EXPECT_TRUE(grid.panels);
    EXPECT_GE(grid.rows.size(), 16U);
    EXPECT_EQ(grid.rows.size() % std::size_t(threads), 0U);
  }
  EXPECT_FALSE(choose_tiles(gradient, 100).panels);  // too low
  EXPECT_FALSE(choose_tiles(GemmShape::packed(1024, 1024, 128, true), 2).panels);
  EXPECT_FALSE(choose_tiles(GemmShape::packed(4096, 4096, 128), 2).panels);
  EXPECT_FALSE(choose_tiles(GemmShape::packed(4096, 4096, 512, true), 2).panels);  // deep
}

// Panels of operands that are read in place are high enough that oneDNN copies them, and at most as
// high as its blocks of 384 rows.
TEST(TileGrid, PanelsOfOperandsReadInPlaceAreHigh) {
  const GemmShape gradient = GemmShape::packed(4096, 4096, 128, true);
  for (const int threads : {1, 2, 4}) {
    const TileGrid grid = choose_tiles(gradient, threads, true);
    EXPECT_TRUE(grid.panels);
    EXPECT_EQ(grid.columns.size(), 1U);
    EXPECT_EQ(grid.rows.size() % std::size_t(threads), 0U);
    for (const TileRange& rows : grid.rows) {
      EXPECT_LE(rows.size(), 384);
      EXPECT_TRUE(copied_by_avx2_code(rows.size(), 4096));
    }
  }
  const auto panels = [](std::int64_t m, std::int64_t n, int threads, bool reads_in_place) {
    return choose_tiles(GemmShape::packed(m, n, 128, true), threads, reads_in_place).rows.size();
  };
  EXPECT_EQ(panels(4096, 4096, 16, true), panels(4096, 4096, 16, false));  // too low
  EXPECT_EQ(panels(4096, 16384, 2, true), panels(4096, 16384, 2, false));  // too large
}

TEST(TileGrid, RangesMayEndAnywhere) {
  EXPECT_EQ(tile_range(20, 2, 0, 1).end, 10);
  EXPECT_EQ(tile_range(21, 2, 1, 1).size(), 11);
}

}  // namespace
}  // namespace paceline
