#include "params/accumulate/contribution_sum.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "paceline/error.h"

namespace paceline {
namespace {

void put(ContributionSum& sum, const std::vector<float>& values,
         const std::vector<std::int32_t>& ids = {}, float weight = 1) {
  std::ranges::copy(values, sum.place().as<float>());
  sum.add({.sparse = !ids.empty(), .ids = ids}, weight);
}

TEST(ContributionSum, TheMeanOfDenseOnes) {
  const VariableSpec spec{.name = "w", .shape = {2}, .rule = Sgd{}};
  ContributionSum sum(spec, 0, 4, nullptr);
  Tensor mean(DType::kFloat32, {2});
  for (const float first : {0.0f, 100.0f}) {
    EXPECT_TRUE(sum.empty());
    for (int i = 0; i < 4; ++i) put(sum, {first + float(i), 8});
    EXPECT_FALSE(sum.take_mean(mean.view()).sparse);
    EXPECT_EQ(mean.data<float>()[0], first + 1.5f);
    EXPECT_EQ(mean.data<float>()[1], 8);
  }
  EXPECT_EQ(sum.squares(mean.view()), 101.5 * 101.5 + 64);
}

TEST(ContributionSum, EachCountsByItsWeight) {
  const VariableSpec dense{.name = "w", .shape = {1}, .rule = Sgd{}};
  ContributionSum sum(dense, 0, 3, nullptr);
  const VariableSpec rows{.name = "table", .shape = {9, 1}, .rule = Sgd{}, .sparse = true};
  ContributionSum of_rows(rows, 2, 2, nullptr);
  Tensor mean(DType::kFloat32, {4, 1});
  for (int window = 0; window < 2; ++window) {
    put(sum, {8}, {}, 1);
    put(sum, {4}, {}, 0.5f);
    put(sum, {2}, {}, 2.5f);
    sum.take_mean(mean.view());
    EXPECT_EQ(mean.data<float>()[0], (8 + 2 + 5) / 4.0f);
    put(of_rows, {2, 4}, {1, 5}, 1);
    put(of_rows, {8}, {5}, 3);
    EXPECT_EQ(of_rows.take_mean(mean.view()).ids.size(), 2u);
    EXPECT_EQ(mean.data<float>()[0], 0.5f);
    EXPECT_EQ(mean.data<float>()[1], 7);
  }
}

TEST(ContributionSum, RowsAreMergedInTheOrderOfTheirIds) {
  const VariableSpec spec{.name = "table", .shape = {9, 1}, .rule = Sgd{}, .sparse = true};
  ContributionSum sum(spec, 3, 2, nullptr);
  Tensor mean(DType::kFloat32, {ContributionSum::most_rows_of_mean(spec, 3, 2), 1});
  for (int window = 0; window < 2; ++window) {
    put(sum, {2, 4, 6}, {1, 5, 8});
    put(sum, {8, 10}, {0, 5});
    const Contribution whole = sum.take_mean(mean.view());
    EXPECT_TRUE(whole.sparse);
    EXPECT_EQ(std::vector(whole.ids.begin(), whole.ids.end()),
              (std::vector<std::int32_t>{0, 1, 5, 8}));
    const auto rows = mean.data<float>().first(4);
    EXPECT_EQ(std::vector(rows.begin(), rows.end()), (std::vector<float>{4, 1, 7, 3}));
    EXPECT_EQ(sum.squares(mean.view()), 16 + 1 + 49 + 9);
  }
}

TEST(ContributionSum, NeverHasMoreRowsThanTheVariable) {
  const VariableSpec spec{.name = "table", .shape = {5, 2}, .rule = Sgd{}, .sparse = true};
  EXPECT_EQ(ContributionSum::most_rows_of_mean(spec, 2, 2), 4);
  EXPECT_EQ(ContributionSum::most_rows_of_mean(spec, 4, 3), 5);
}

TEST(ContributionSum, RefusesAnIdThatIsNoRow) {
  const VariableSpec spec{.name = "table", .shape = {5, 1}, .rule = Sgd{}, .sparse = true};
  ContributionSum sum(spec, 2, 2, nullptr);
  EXPECT_THROW(put(sum, {1, 1}, {3, 5}), Error);
}

}  // namespace
}  // namespace paceline
