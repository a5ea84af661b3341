// Tests casts whose result C++ leaves open; op_cases_elementwise.cc tests the ordinary values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/evaluate.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;

template <typename To, typename From>
std::vector<To> cast_on_cpu(const std::vector<From>& values) {
  Graph graph;
  const Value y =
      cast(graph.constant(Tensor::of<From>({std::int64_t(values.size())}, values)), kDTypeOf<To>);
  RealClock clock;
  const Tensor result = evaluate_graph({&y, 1}, {}, *make_device({.kind = "cpu"}, clock))[0];
  return {result.data<To>().begin(), result.data<To>().end()};
}

TEST(Cast, FloatsBeyondAnIntegerBecomeItsNearestAndNanZero) {
  const std::vector<float> values = {NAN, INFINITY, -INFINITY, 3e9f, -3e9f, -1.9f, 255.9f};
  EXPECT_THAT((cast_on_cpu<std::int32_t>(values)),
              ElementsAre(0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, -1, 255));
  EXPECT_THAT((cast_on_cpu<std::uint8_t>(values)), ElementsAre(0, 255, 0, 255, 0, 0, 255));
  EXPECT_THAT((cast_on_cpu<std::int64_t>(values)),
              ElementsAre(0, INT64_MAX, INT64_MIN, 3000000000, -3000000000, -1, 255));
}

TEST(Cast, The16BitFloatsToo) {
  const std::vector<Float16> values = {Float16(NAN), Float16(INFINITY), Float16(-2.5f)};
  EXPECT_THAT((cast_on_cpu<std::int32_t>(values)), ElementsAre(0, INT32_MAX, -2));
}

TEST(Cast, TheLastDoublesThatFitAreExact) {
  const std::vector<double> values = {2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0};
  EXPECT_THAT((cast_on_cpu<std::int32_t>(values)),
              ElementsAre(INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN));
}

}  // namespace
}  // namespace paceline
