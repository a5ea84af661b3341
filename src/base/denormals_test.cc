#include "base/denormals.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

float product(float a, float b) {
  const volatile float x = a, y = b;
  return x * y;
}

// The comparisons follow the scope, since a denormal equals zero within it.
TEST(FlushDenormals, OperandsAndResultsAreZeroForAsLongAsItLives) {
  constexpr float kDenormal = 1e-40f, kSmallest = 2e-38f;
  float inner_result = -1, result = -1, of_operand = -1, of_smallest = -1;
  {
    const FlushDenormals outer;
    {
      const FlushDenormals inner;
      inner_result = product(1e-30f, 1e-10f);
    }
    result = product(1e-30f, 1e-10f);
    of_operand = product(kDenormal, 1e30f);
    of_smallest = product(kSmallest, 1);
  }
  EXPECT_EQ(inner_result, 0);
  EXPECT_EQ(result, 0) << "the outer one lives on";
  EXPECT_EQ(of_operand, 0);
  EXPECT_EQ(of_smallest, kSmallest) << "of full precision";
  EXPECT_GT(product(1e-30f, 1e-10f), 0);
  EXPECT_GT(product(kDenormal, 1e30f), 0);
}

}  // namespace
}  // namespace paceline
