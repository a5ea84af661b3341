#include "kernels/cpu/tile_grid.h"

#include <gmock/gmock.h>

namespace paceline {
namespace {

TEST(TileGrid, OneThreadGetsTilesNoWiderThanTheCacheHolds) {
  const TileGrid grid = choose_tiles(GemmShape::packed(400, 10000, 200), 1);
  EXPECT_EQ(grid.rows, 1);
  EXPECT_EQ(grid.columns, 10);
  EXPECT_EQ(choose_tiles(GemmShape::packed(400, 800, 200), 1).tiles(), 1);
  EXPECT_EQ(choose_tiles(GemmShape::packed(400, 4096, 200, false, true), 1).tiles(), 1);
}

TEST(TileGrid, SeveralThreadsGetNoWiderTilesAndAllAlike) {
  EXPECT_EQ(choose_tiles(GemmShape::packed(400, 10000, 200), 2).columns, 10);
  EXPECT_EQ(choose_tiles(GemmShape::packed(400, 10000, 200), 3).columns, 12);
}

GemmShape with_packed_b(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmShape shape = GemmShape::packed(m, n, k, false, true);
  shape.packed_b = true;
  return shape;
}

TEST(TileGrid, APackedOperandIsCutByColumnsWhereRowsAreFew) {
  EXPECT_EQ(choose_tiles(with_packed_b(20, 200, 800), 3).columns, 2);
  EXPECT_EQ(choose_tiles(with_packed_b(20, 1600, 800), 4).columns, 16);
}

TEST(TileGrid, APackedOperandInTheCacheIsSharedByWholeRows) {
  const TileGrid grid = choose_tiles(with_packed_b(20, 200, 800), 2);
  EXPECT_EQ(grid.rows, 2);
  EXPECT_EQ(grid.columns, 1);
  EXPECT_EQ(choose_tiles(with_packed_b(64, 650, 2600), 2).rows, 1);  // too large
  EXPECT_EQ(choose_tiles(with_packed_b(64, 1500, 6000), 1).tiles(), 1);
}

TEST(TileGrid, ASmallProductIsNotCut) {
  EXPECT_EQ(choose_tiles(GemmShape::packed(32, 256, 128), 8).tiles(), 1);
}

TEST(TileGrid, TilesAreBetweenOneAndFourAThread) {
  for (const bool transposed : {false, true}) {
    for (const int threads : {2, 3, 8, 16}) {
      const auto shape = GemmShape::packed(2048, 4096, 512, false, transposed);
      const std::int64_t tiles = choose_tiles(shape, threads).tiles();
      EXPECT_GE(tiles, threads);
      EXPECT_LE(tiles, 4 * threads);
      EXPECT_EQ(tiles % threads, 0);
    }
  }
}

TEST(TileGrid, ATransposedOperandIsCutByRowsOnceAThread) {
  const TileGrid grid = choose_tiles(GemmShape::packed(400, 200, 10000, false, true), 2);
  EXPECT_EQ(grid.rows, 2);
  EXPECT_EQ(grid.columns, 1);
}

TEST(TileGrid, AWideTransposedOperandIsCutByColumnsOnceAThread) {
  for (const int threads : {2, 3, 8}) {
    const TileGrid grid = choose_tiles(GemmShape::packed(128, 4096, 4096, false, true), threads);
    EXPECT_EQ(grid.rows, 1);
    EXPECT_EQ(grid.columns, threads);
  }
}

TEST(TileGrid, AFlatProductIsCutByItsOtherSide) {
  const TileGrid grid = choose_tiles(GemmShape::packed(20, 200, 800, false, true), 2);
  EXPECT_EQ(grid.rows, 1);
  EXPECT_EQ(grid.columns, 2);
}

TEST(TileGrid, ALargeWeightsGradientIsCutIntoPanelsForAllThreads) {
  const GemmShape gradient = GemmShape::packed(4096, 4096, 128, true);
  for (const int threads : {1, 3, 16}) {
    const TileGrid grid = choose_tiles(gradient, threads);
    EXPECT_TRUE(grid.panels);
    EXPECT_GE(grid.rows, 16);
    EXPECT_EQ(grid.rows % threads, 0);
  }
  EXPECT_FALSE(choose_tiles(gradient, 100).panels);  // too low
  EXPECT_FALSE(choose_tiles(GemmShape::packed(1024, 1024, 128, true), 2).panels);
  EXPECT_FALSE(choose_tiles(GemmShape::packed(4096, 4096, 128), 2).panels);
}

TEST(TileGrid, RangesCoverEverythingOnce) {
  std::int64_t end = 0;
  for (int i = 0; i < 7; ++i) {
    const TileRange range = tile_range(1001, 7, i);
    EXPECT_EQ(range.begin, end);
    EXPECT_GT(range.size(), 0);
    end = range.end;
  }
  EXPECT_EQ(end, 1001);
}

TEST(TileGrid, RangesMayEndAnywhere) {
  EXPECT_EQ(tile_range(20, 2, 0, 1).end, 10);
  EXPECT_EQ(tile_range(21, 2, 1, 1).size(), 11);
}

}  // namespace
}  // namespace paceline
