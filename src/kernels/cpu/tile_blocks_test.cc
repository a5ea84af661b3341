#include "kernels/cpu/tile_blocks.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TileBlocks in_place(const GemmShape& tile) { return choose_blocks(tile, true); }

void expect_one_block(const TileBlocks& blocks, const GemmShape& tile) {
  EXPECT_FALSE(blocks.copies());
  EXPECT_EQ(blocks.rows, tile.m);
  EXPECT_EQ(blocks.columns, tile.n);
  EXPECT_EQ(blocks.depth, tile.k);
  EXPECT_EQ(blocks.elements_of_a() + blocks.elements_of_b(), 0);
}

TEST(TileBlocks, ARightOperandWhoseRowsShareCacheSetsIsCopiedInBlocks) {
  const TileBlocks blocks = in_place(GemmShape::packed(128, 1024, 4096));
  EXPECT_TRUE(blocks.copy_b);
  EXPECT_FALSE(blocks.copy_a);
  EXPECT_EQ(blocks.rows, 128);
  EXPECT_EQ(blocks.columns, 352);  // 1,024 columns in three parts
  EXPECT_EQ(blocks.depth, 128);
  EXPECT_EQ(blocks.elements_of_b(), 128 * 352);
  EXPECT_TRUE(in_place(GemmShape::packed(128, 512, 300)).copy_b);
}

TEST(TileBlocks, ATransposedLeftOperandToo) {
  const GemmShape tile = GemmShape::packed(512, 400, 128, true);
  const TileBlocks blocks = in_place(tile);
  EXPECT_TRUE(blocks.copy_a);
  EXPECT_FALSE(blocks.copy_b);
  EXPECT_EQ(blocks.rows, 176);
  EXPECT_EQ(blocks.elements_of_a(), 128 * 176);
  EXPECT_FALSE(in_place(GemmShape::packed(400, 200, 512)).copies());  // reads along the rows
}

TEST(TileBlocks, WhatLiesWellOrIsCopiedAnywayIsOneBlock) {
  for (const GemmShape& tile :
       {GemmShape::packed(128, 1000, 4096), GemmShape::packed(128, 1024, 4096, false, true),
        GemmShape::packed(20, 1024, 4096), GemmShape::packed(512, 1024, 128, true)}) {
    expect_one_block(in_place(tile), tile);
  }
  GemmShape packed = GemmShape::packed(128, 1024, 4096, true);
  packed.packed_b = true;
  expect_one_block(in_place(packed), packed);
  GemmShape rounded = GemmShape::packed(128, 1024, 4096);
  rounded.operands = DType::kBFloat16;
  expect_one_block(in_place(rounded), rounded);
}

TEST(TileBlocks, NothingIsCopiedWhereOneDnnDoesNotReadInPlace) {
  const GemmShape tile = GemmShape::packed(128, 1024, 4096);
  expect_one_block(choose_blocks(tile, false), tile);
}

TEST(TileBlocks, RowsOfACopyShareNoCacheSets) {
  for (std::int64_t columns = 1; columns < 5000; ++columns) {
    EXPECT_GE(copied_ld(columns), columns);
    EXPECT_NE(copied_ld(columns) % 128, 0) << columns;
    EXPECT_EQ(copied_ld(columns) % 16, 0) << columns;
  }
}

}  // namespace
}  // namespace paceline
