#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "paceline/error.h"
#include "paceline/graph.h"

namespace paceline {
namespace {

std::vector<float> filled(const Initializer& initializer, const Shape& shape,
                          std::uint64_t seed = 1, std::string_view name = "w") {
  std::vector<float> values(std::size_t(shape.elements()));
  initializer.fill(values, shape, seed, name);
  return values;
}

struct Moments {
  double mean, deviation;
};

Moments moments_of(const std::vector<float>& values) {
  const double n = double(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (float value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / n)};
}

TEST(Initializer, ConstantsFill) {
  EXPECT_EQ(filled(Initializer::constant(0.5f), {3}), (std::vector<float>{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(filled(Initializer::zeros(), {2}), (std::vector<float>{0, 0}));
}

TEST(Initializer, GivenValuesAreTaken) {
  const Initializer given = Initializer::values(Tensor::of<float>({2, 1}, {3, -1}));
  EXPECT_EQ(filled(given, {2, 1}, 5), (std::vector<float>{3, -1}));
}

TEST(Initializer, DependsOnSeedAndNameOnly) {
  const Initializer initializer = Initializer::uniform(-1, 1);
  EXPECT_EQ(filled(initializer, {100}), filled(initializer, {100}));
  EXPECT_NE(filled(initializer, {100}, 1), filled(initializer, {100}, 2));
  EXPECT_NE(filled(initializer, {100}, 1, "w"), filled(initializer, {100}, 1, "v"));
}

TEST(Initializer, AnElementsValueDoesNotDependOnHowManyFollow) {
  for (const Initializer& initializer : {Initializer::uniform(-1, 1), Initializer::normal(0, 1),
                                         Initializer::truncated_normal(0, 1)}) {
    const std::vector<float> many = filled(initializer, {1001});
    for (std::int64_t n : {1, 2, 3, 5, 1000}) {
      const std::vector<float> few = filled(initializer, {n});
      EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin())) << n;
    }
  }
}

TEST(Initializer, UniformStaysInItsBoundsAndFillsThem) {
  const std::vector<float> values = filled(Initializer::uniform(-0.1f, 0.3f), {100000});
  const auto [low, high] = std::ranges::minmax(values);
  EXPECT_GE(low, -0.1f);
  EXPECT_LT(high, 0.3f);
  const Moments moments = moments_of(values);
  EXPECT_NEAR(moments.mean, 0.1, 0.002);
  EXPECT_NEAR(moments.deviation, 0.4 / std::sqrt(12), 0.002);
  EXPECT_EQ(filled(Initializer::uniform(2, 2), {2}), (std::vector<float>{2, 2}));
}

TEST(Initializer, NormalHasItsMoments) {
  const std::vector<float> values = filled(Initializer::normal(3, 0.5f), {100000});
  const Moments moments = moments_of(values);
  EXPECT_NEAR(moments.mean, 3, 0.01);
  EXPECT_NEAR(moments.deviation, 0.5, 0.01);
  const auto within = std::ranges::count_if(values, [](float x) { return std::abs(x - 3) < 0.5; });
  EXPECT_NEAR(double(within) / 100000, 0.6827, 0.006);
}

TEST(Initializer, TruncatedNormalStopsAtTwoDeviations) {
  const std::vector<float> values = filled(Initializer::truncated_normal(1, 0.05f), {100000});
  const auto [low, high] = std::ranges::minmax(values);
  EXPECT_GE(low, 0.9f - 1e-6f);
  EXPECT_LE(high, 1.1f + 1e-6f);
  const Moments moments = moments_of(values);
  EXPECT_NEAR(moments.mean, 1, 0.001);
  // Cut at two deviations, a normal distribution keeps √(1 − 2·2·φ(2)/(2Φ(2) − 1)) of its
  // deviation.
  EXPECT_NEAR(moments.deviation, 0.05 * 0.8796, 0.0005);
}

TEST(Initializer, GlorotTakesItsBoundFromTheShape) {
  const auto bound = [](const Shape& shape) {
    const std::vector<float> values = filled(Initializer::glorot_uniform(), shape);
    return double(std::ranges::max(values, {}, [](float x) { return std::abs(x); }));
  };
  EXPECT_NEAR(bound({256, 512}), std::sqrt(6.0 / 768), 1e-4);
  EXPECT_NEAR(bound({9, 64, 32}), std::sqrt(6.0 / (9 * 96)), 1e-4);
  EXPECT_NEAR(bound({64, 32, 5, 3}), std::sqrt(6.0 / (15 * 96)), 1e-4) << "weights of conv2d";
  EXPECT_NEAR(bound({100000}), std::sqrt(6.0 / 200000), 1e-5);
  EXPECT_LE(bound({}), std::sqrt(3.0));
}

TEST(Initializer, NeedsMemoryOfTheShape) {
  std::vector<float> values(3);
  EXPECT_THROW(Initializer::zeros().fill(values, {2, 2}, 1, "w"), Error);
  EXPECT_TRUE(filled(Initializer::glorot_uniform(), {0, 4}).empty());
}

}  // namespace
}  // namespace paceline
