#include "params/shard/layout.h"

#include <gtest/gtest.h>

#include "base/row_count.h"

namespace paceline {
namespace {

TEST(ShardLayout, PiecesOfAPsLieApartAtMultiplesOf64Bytes) {
  const std::vector<VariableSpec> variables = {
      {.name = "a", .shape = {3}}, {.name = "b", .shape = {20}}, {.name = "c", .shape = {}}};
  std::vector<Piece> pieces;
  pieces.reserve(3);
  for (int v = 0; v < 3; ++v) {
    pieces.push_back({.id = std::uint32_t(v),
                      .variable = v,
                      .first_row = 0,
                      .rows = row_count(variables[std::size_t(v)].shape),
                      .ps = v == 1 ? 0 : 1});
  }
  const ShardLayout first = shard_layout(variables, pieces, 0);
  EXPECT_EQ(first.offsets[1], 0u);
  EXPECT_EQ(first.bytes, 128u);
  const ShardLayout second = shard_layout(variables, pieces, 1);
  EXPECT_EQ(second.offsets[0], 0u);
  EXPECT_EQ(second.offsets[2], 64u);
  EXPECT_EQ(second.bytes, 128u);
}

}  // namespace
}  // namespace paceline
