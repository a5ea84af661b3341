#include "train/input_normals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace paceline {
namespace {

TEST(NormalTable, DrawsStandardNormalValues) {
  const NormalTable normals;
  std::vector<float> values(1 << 18);
  normals.fill(values, 42, 0);
  double sum = 0, squares = 0, fourth = 0;
  std::int64_t beyond_two = 0;
  for (const double x : values) {
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    beyond_two += std::abs(x) > 2;
  }
  const auto n = double(values.size());
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.015);
  EXPECT_NEAR(fourth / n, 3, 0.1);
  EXPECT_NEAR(double(beyond_two) / n, 0.0455, 0.003);
}

TEST(NormalTable, DependsOnKeyStepAndElementOnly) {
  const NormalTable normals, others;
  std::vector<float> a(1001), b(1001), c(1001), d(500);
  normals.fill(a, 1, 5);
  others.fill(b, 1, 5);
  EXPECT_EQ(a, b);
  normals.fill(d, 1, 5);
  EXPECT_TRUE(std::equal(d.begin(), d.end(), a.begin()));
  normals.fill(c, 1, 6);
  EXPECT_NE(a, c);
  normals.fill(c, 2, 5);
  EXPECT_NE(a, c);
}

}  // namespace
}  // namespace paceline
