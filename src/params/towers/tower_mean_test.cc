#include "params/towers/tower_mean.h"

#include <gmock/gmock.h>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using testing::ElementsAre;

void fill(const TensorView& view, const std::vector<float>& values) {
  std::ranges::copy(values, view.as<float>());
}

VariableSpec rows_spec() {
  return {.name = "table", .shape = {10, 2}, .rule = Sgd{}, .sparse = true};
}

std::vector<std::int64_t> equal(int towers) {
  return std::vector<std::int64_t>(std::size_t(towers), 8);
}

// 1 + 1e8 is 1e8 in float32. So the sum of pairs loses both small numbers, while a sum from the
// first value to the last would keep the last one.
TEST(TowerMean, AddsPairsFirst) {
  const VariableSpec spec{.name = "w", .shape = {1}, .rule = Sgd{}};
  TowerMean mean(spec, 0, 4, false, nullptr);
  const std::vector<float> values = {1, -1e8F, 1e8F, 1};
  for (int tower = 0; tower < 4; ++tower) fill(mean.place(tower), {values[std::size_t(tower)]});
  const Tensor into(DType::kFloat32, {1});
  const std::vector<Contribution> given(4);
  EXPECT_FALSE(mean.take(given, equal(4), into.view()).sparse);
  EXPECT_EQ(into.data<float>()[0], ((1 - 1e8F) + (1e8F + 1)) / 4);
}

TEST(TowerMean, OfAnyNumberOfTowersIsTheMeanOfEachElementOnAnyNumberOfThreads) {
  const VariableSpec spec{.name = "w", .shape = {40'001}, .rule = Sgd{}};
  ThreadPool pool(3);
  for (const int towers : {1, 2, 3, 5, 8, 13, kMostTowers}) {
    std::vector<double> squares;
    for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
      TowerMean mean(spec, 0, towers, true, threads);
      for (int tower = 0; tower < towers; ++tower) {
        float* const values = mean.place(tower).as<float>();
        for (std::int64_t i = 0; i < 40'001; ++i) values[i] = float((i + tower * 3) % 7);
      }
      const Tensor into(DType::kFloat32, spec.shape);
      mean.take(std::vector<Contribution>(std::size_t(towers)), equal(towers), into.view());
      double sum_of_squares = 0;
      for (std::int64_t i = 0; i < 40'001; ++i) {
        double sum = 0;
        for (int tower = 0; tower < towers; ++tower) sum += double((i + tower * 3) % 7);
        const double got = double(into.data<float>()[std::size_t(i)]);
        ASSERT_NEAR(got, sum / towers, 1e-6) << towers << " towers, element " << i;
        sum_of_squares += got * got;
      }
      EXPECT_NEAR(mean.squares(), sum_of_squares, 1e-9 * sum_of_squares);
      squares.push_back(mean.squares());
    }
    EXPECT_EQ(squares[0], squares[1]);
  }
}

TEST(TowerMean, ARowThatATowerLacksIsZero) {
  const VariableSpec spec = rows_spec();
  TowerMean mean(spec, 3, 2, true, nullptr);
  fill(mean.place(0), {1, 2, 3, 4, 5, 6});
  fill(mean.place(1), {10, 20, 30, 40});
  const std::vector<std::int32_t> first = {7, 2, 9}, second = {2, 4};
  const Tensor into(DType::kFloat32, {5, 2});
  const Contribution got =
      mean.take(std::vector<Contribution>{{true, first}, {true, second}}, equal(2), into.view());
  EXPECT_TRUE(got.sparse);
  EXPECT_THAT(got.ids, ElementsAre(2, 4, 7, 9));
  EXPECT_THAT(into.data<float>().first(8), ElementsAre(6.5F, 12, 15, 20, 0.5F, 1, 2.5F, 3));
  EXPECT_DOUBLE_EQ(mean.squares(), 6.5 * 6.5 + 144 + 225 + 400 + 0.25 + 1 + 6.25 + 9);
}

// A tower without examples counts nothing. If no tower has any, all count alike.
TEST(TowerMean, EachContributionCountsByItsExamples) {
  const VariableSpec dense{.name = "w", .shape = {2}, .rule = Sgd{}}, rows = rows_spec();
  const Tensor into(DType::kFloat32, {5, 2});
  const auto mean_of = [&](const std::vector<std::int64_t>& examples) {
    TowerMean mean(dense, 0, 3, false, nullptr);
    for (int tower = 0; tower < 3; ++tower) fill(mean.place(tower), {float(tower), 6});
    mean.take(std::vector<Contribution>(3), examples, into.view());
    return into.data<float>()[0];
  };
  EXPECT_FLOAT_EQ(mean_of({1, 2, 3}), 8.0F / 6);
  EXPECT_FLOAT_EQ(into.data<float>()[1], 6);
  EXPECT_FLOAT_EQ(mean_of({4, 2, 0}), 2.0F / 6);
  EXPECT_FLOAT_EQ(mean_of({0, 0, 0}), 1);
  TowerMean mean(rows, 2, 2, false, nullptr);
  fill(mean.place(0), {4, 8, 12, 16});
  fill(mean.place(1), {8, 16});
  const std::vector<std::int32_t> first = {7, 2}, second = {2};
  const std::vector<std::int64_t> examples = {3, 1};
  mean.take(std::vector<Contribution>{{true, first}, {true, second}}, examples, into.view());
  EXPECT_THAT(into.data<float>().first(4), ElementsAre(11, 16, 3, 6));
}

TEST(TowerMean, AnIdThatIsNoRowIsRefused) {
  const VariableSpec spec = rows_spec();
  TowerMean mean(spec, 1, 1, false, nullptr);
  const Tensor into(DType::kFloat32, {1, 2});
  for (const std::int32_t id : {-1, 10}) {
    EXPECT_THAT(
        error_of(ErrorCode::kInvalidArgument,
                 [&] {
                   mean.take(std::vector<Contribution>{{true, {&id, 1}}}, equal(1), into.view());
                 }),
        testing::HasSubstr("[variable table] row " + std::to_string(id)));
  }
}

}  // namespace
}  // namespace paceline
