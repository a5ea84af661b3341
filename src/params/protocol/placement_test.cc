#include "params/protocol/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/row_count.h"

namespace paceline {
namespace {

std::vector<VariableSpec> specs(std::initializer_list<Shape> shapes) {
  std::vector<VariableSpec> list;
  for (const Shape& shape : shapes) {
    list.push_back({.name = "v" + std::to_string(list.size()), .shape = shape});
  }
  return list;
}

std::map<int, std::size_t> load(std::span<const VariableSpec> variables,
                                std::span<const Piece> pieces) {
  std::map<int, std::size_t> bytes;
  for (const Piece& piece : pieces) {
    bytes[piece.ps] += piece_bytes(variables[std::size_t(piece.variable)], piece);
  }
  return bytes;
}

TEST(Placement, LargestFirstOntoTheLeastLoaded) {
  const auto variables = specs({Shape{1}, Shape{8}, Shape{5}, Shape{4}});
  const auto pieces = place_variables(variables, 2);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[1].ps, 0);
  EXPECT_EQ(pieces[2].ps, 1);
  EXPECT_EQ(pieces[3].ps, 1);
  EXPECT_EQ(pieces[0].ps, 0);
}

TEST(Placement, OnePsHoldsAllWhole) {
  const auto variables = specs({Shape{3, 4}, Shape{}, Shape{0, 2}});
  const auto pieces = place_variables(variables, 1);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].rows, 3);
  EXPECT_EQ(pieces[1].rows, 1);
  EXPECT_EQ(pieces[2].rows, 0);
}

// The variables are those of ptb, whose embedding moves by rows.
TEST(Placement, DenseAndSparseVariablesAreEachEven) {
  auto variables = specs({Shape{10000, 200}, Shape{400, 800}, Shape{400, 800}, Shape{200, 10000}});
  variables[0].sparse = true;
  for (int num_ps = 2; num_ps <= 4; ++num_ps) {
    std::map<int, std::size_t> kept, moved;
    for (const Piece& piece : place_variables(variables, num_ps)) {
      const std::size_t bytes = piece_bytes(variables[std::size_t(piece.variable)], piece);
      kept[piece.ps] += bytes;
      if (!variables[std::size_t(piece.variable)].sparse) moved[piece.ps] += bytes;
    }
    ASSERT_EQ(moved.size(), std::size_t(num_ps));
    for (int ps = 0; ps < num_ps; ++ps) {
      EXPECT_NEAR(double(moved[ps]), 10'560'000.0 / num_ps, 0.05 * 10'560'000 / num_ps);
      EXPECT_NEAR(double(kept[ps]), 18'560'000.0 / num_ps, 0.05 * 18'560'000 / num_ps);
    }
  }
}

TEST(Placement, AVariableWhoseRuleAsksForAllOfItIsNotSplit) {
  auto variables = specs({Shape{4096, 4096}, Shape{16, 16}});
  EXPECT_EQ(place_variables(variables, 2).size(), 3u);
  variables[0].rule = CustomRule{.name = "all",
                                 .update =
                                     [](const RuleTerms& r) {
                                       return RuleUpdate{r.value, {}};
                                     },
                                 .whole = true};
  EXPECT_EQ(place_variables(variables, 2).size(), 2u);
}

TEST(Placement, AVariableLargerThanItsShareIsSplitByRows) {
  // The layers of mlp: 256-4096-4096-256.
  const auto variables = specs({Shape{256, 4096}, Shape{4096}, Shape{4096, 4096}, Shape{4096},
                                Shape{4096, 256}, Shape{256}});
  const auto pieces = place_variables(variables, 2);
  EXPECT_EQ(std::count_if(pieces.begin(), pieces.end(),
                          [](const Piece& piece) { return piece.variable == 2; }),
            2);
  const auto bytes = load(variables, pieces);
  EXPECT_NEAR(double(bytes.at(0)), double(bytes.at(1)), 2e4);
}

// The variable is the softmax of ptb, 64 rows of which are whole pages. A worker can read it in the
// memory of ps tasks of its host only if cuts are at multiples of 64 rows.
TEST(Placement, CutsAreBetweenPagesWhereThatStaysEven) {
  const auto variables = specs({Shape{400, 800}, Shape{400, 800}, Shape{200, 10000}});
  const auto pieces = place_variables(variables, 2);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[3].first_row, 128);
  EXPECT_EQ(pieces[0].ps, pieces[3].ps);
  EXPECT_EQ(pieces[1].ps, pieces[3].ps);
  for (const int num_ps : {2, 4}) {
    const auto placed = place_variables(variables, num_ps);
    for (VariableId v = 0; v < 3; ++v) EXPECT_TRUE(can_be_joined(variables, placed, v));
    for (const auto& [ps, bytes] : load(variables, placed)) {
      EXPECT_NEAR(double(bytes), 10'560'000.0 / num_ps, 0.05 * 10'560'000 / num_ps);
    }
  }
}

TEST(Placement, AVariableOfFewRowsIsCutWithinAPage) {
  const auto variables = specs({Shape{50, 10000}});
  const auto pieces = place_variables(variables, 2);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].first_row, 25);
  EXPECT_FALSE(can_be_joined(variables, pieces, 0));
}

TEST(Placement, EveryRowIsPlacedOnceInOrder) {
  const auto variables = specs({Shape{7, 3}, Shape{1000, 2}, Shape{}, Shape{2, 2}});
  for (int num_ps = 1; num_ps <= 5; ++num_ps) {
    std::vector<std::int64_t> rows(variables.size(), 0);
    std::uint32_t id = 0;
    for (const Piece& piece : place_variables(variables, num_ps)) {
      EXPECT_EQ(piece.id, id++);
      EXPECT_EQ(piece.first_row, rows[std::size_t(piece.variable)]);
      EXPECT_LT(piece.ps, num_ps);
      rows[std::size_t(piece.variable)] += piece.rows;
    }
    EXPECT_EQ(rows, (std::vector<std::int64_t>{7, 1000, 1, 2}));
  }
}

TEST(Placement, TellsWhatAPsKeepsAndItsLargestPiece) {
  const auto variables = specs({Shape{16, 16}, Shape{4096, 64}, Shape{8}});
  const auto pieces = place_variables(variables, 2);
  std::size_t bytes = 0;
  for (const int ps : {0, 1}) {
    const KeptOnPs kept = kept_on_ps(variables, pieces, ps);
    EXPECT_EQ(kept.largest, "v1") << "both have a part of it";
    EXPECT_GT(kept.largest_bytes, kept.bytes - (16 * 16 + 8) * sizeof(float) - 1);
    EXPECT_EQ(kept.bytes, load(variables, pieces).at(ps));
    bytes += kept.bytes;
  }
  EXPECT_EQ(bytes, (16 * 16 + 4096 * 64 + 8) * sizeof(float));
  EXPECT_EQ(kept_on_ps(variables, pieces, 2).largest, "");
}

TEST(Placement, TextNamesVariableRowsBytesAndPs) {
  const auto variables = specs({Shape{6, 5}});
  EXPECT_EQ(placement_text(variables, place_variables(variables, 1)),
            "v0 rows 0-6 of 6: 120 bytes on ps:0\n");
}

}  // namespace
}  // namespace paceline
