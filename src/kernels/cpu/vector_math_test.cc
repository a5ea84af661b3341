#include "kernels/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace paceline {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

float apply(UnaryFunction f, float x) {
  float y = 0;
  vector_unary(f, 0.5f, &x, &y, 1);
  return y;
}

TEST(VectorMathTest, ValuesAtTheEndsOfTheRange) {
  EXPECT_EQ(apply(UnaryFunction::kExp, -kInfinity), 0);
  EXPECT_EQ(apply(UnaryFunction::kExp, 1000), kInfinity);
  EXPECT_EQ(apply(UnaryFunction::kExp, 0), 1);
  EXPECT_EQ(apply(UnaryFunction::kLog, 0), -kInfinity);
  EXPECT_EQ(apply(UnaryFunction::kLog, kInfinity), kInfinity);
  EXPECT_EQ(apply(UnaryFunction::kLog, 1), 0);
  EXPECT_TRUE(std::isnan(apply(UnaryFunction::kLog, -1)));
  EXPECT_TRUE(std::isnan(apply(UnaryFunction::kSqrt, -1)));
  EXPECT_EQ(apply(UnaryFunction::kSigmoid, -1000), 0);
  EXPECT_EQ(apply(UnaryFunction::kSigmoid, 1000), 1);
  EXPECT_EQ(apply(UnaryFunction::kTanh, -1000), -1);
  EXPECT_EQ(apply(UnaryFunction::kTanh, 1000), 1);
  EXPECT_EQ(apply(UnaryFunction::kTanh, 0), 0);
}

// A loss that became NaN must be seen.
TEST(VectorMathTest, NanStaysNan) {
  for (int f = 0; f <= int(UnaryFunction::kSquare); ++f) {
    EXPECT_TRUE(std::isnan(apply(UnaryFunction(f), kNan))) << "function " << f;
  }
}

TEST(VectorMathTest, AnElementDoesNotDependOnItsPlace) {
  constexpr int kCount = 67;
  float x[kCount], whole[kCount], part[kCount];
  for (int i = 0; i < kCount; ++i) x[i] = 0.1f + 0.37f * float(i);
  for (int f = 0; f <= int(UnaryFunction::kSquare); ++f) {
    vector_unary(UnaryFunction(f), 0.3f, x, whole, kCount);
    for (int i = 0; i < kCount; ++i) vector_unary(UnaryFunction(f), 0.3f, x + i, part + i, 1);
    for (int i = 0; i < kCount; ++i)
      EXPECT_EQ(whole[i], part[i]) << "function " << f << " at " << i;
  }
}

TEST(VectorMathTest, ALongSumKeepsItsDigits) {
  const std::vector<float> ones(20'000'001, 1.0f);
  EXPECT_EQ(vector_sum(ones.data(), std::int64_t(ones.size())), 20'000'001.0);
}

}  // namespace
}  // namespace paceline
