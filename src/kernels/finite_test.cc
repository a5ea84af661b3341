#include "kernels/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace paceline {
namespace {

TEST(FirstNotFinite, IsTheLengthWhereAllNumbersAreFinite) {
  std::vector<float> values(3000, std::numeric_limits<float>::max());
  values[7] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(first_not_finite(values), 3000u);
  EXPECT_EQ(first_not_finite({}), 0u);
}

TEST(FirstNotFinite, FindsNanAndBothInfinitiesAnywhere) {
  for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
    for (const std::size_t at : {0, 1, 1023, 1024, 2998, 2999}) {
      std::vector<float> values(3000, -1.5f);
      values[at] = bad;
      values[2999] = bad;
      EXPECT_EQ(first_not_finite(values), at);
    }
  }
}

}  // namespace
}  // namespace paceline
