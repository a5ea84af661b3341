// Tests random ops and dropout: they depend on (seed, name, task, step), never on threads.
#include <gmock/gmock.h>

#include <cmath>

#include "graph/autodiff.h"
#include "kernels/evaluate.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

class RandomOps : public testing::Test {
 protected:
  std::vector<float> floats(Value value, const StepIdentity& step, int threads = 1) {
    DeviceOptions options;
    options.threads = threads;
    const auto device = make_device(options, clock_);
    const Tensor tensor = evaluate_graph({&value, 1}, feeds_, *device, step)[0];
    return {tensor.data<float>().begin(), tensor.data<float>().end()};
  }

  RealClock clock_;
  Graph graph_;
  Feeds feeds_;
};

TEST_F(RandomOps, SameStepSameNumbersOnAnyThreads) {
  const Value x = random_normal(graph_, {101, 103});
  EXPECT_EQ(floats(x, {1, 2, 3}, 1), floats(x, {1, 2, 3}, 4));
}

TEST_F(RandomOps, SeedTaskStepAndNameEachMakeOthers) {
  const Value x = random_uniform(graph_, {8}), y = random_uniform(graph_, {8});
  const auto numbers = floats(x, {1, 2, 3});
  EXPECT_NE(numbers, floats(x, {2, 2, 3}));
  EXPECT_NE(numbers, floats(x, {1, 3, 3}));
  EXPECT_NE(numbers, floats(x, {1, 2, 4}));
  EXPECT_NE(numbers, floats(y, {1, 2, 3}));
}

TEST_F(RandomOps, NormalHasMeanDeviationAndTails) {
  const auto x = floats(random_normal(graph_, {400000}, 3, 2), {1, 0, 0});
  double sum = 0, squares = 0, beyond = 0;
  for (const float v : x) {
    const double z = (double(v) - 3) / 2;
    sum += z;
    squares += z * z;
    beyond += std::abs(z) > 2 ? 1 : 0;
  }
  const double n = double(x.size());
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(beyond / n, 0.0455, 5 * std::sqrt(0.0455 / n));
}

TEST_F(RandomOps, UniformStaysInItsRange) {
  const auto x = floats(random_uniform(graph_, {200000}, -3, 5), {1, 0, 0});
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  EXPECT_GE(*least, -3);
  EXPECT_LT(*least, -2.99);
  EXPECT_LT(*most, 5);
  EXPECT_GT(*most, 4.99);
}

TEST_F(RandomOps, IntegersReachBothEnds) {
  const Value value = random_integers(graph_, {1000}, -2, 3);
  const auto device = make_device({}, clock_);
  const Tensor drawn = evaluate_graph({&value, 1}, {}, *device)[0];
  int counts[5] = {};
  for (const std::int32_t i : drawn.data<std::int32_t>()) {
    ASSERT_THAT(i, testing::AllOf(testing::Ge(-2), testing::Lt(3)));
    ++counts[i + 2];
  }
  for (const int count : counts) EXPECT_NEAR(count, 200, 80);
}

TEST_F(RandomOps, DropoutKeepsItsShareAndScales) {
  const Value x = graph_.input("x", {100000});
  feeds_["x"] = Tensor::of<float>({100000}, std::vector<float>(100000, 1));
  const auto y = floats(dropout(x, 0.25), {1, 0, 0});
  double kept = 0;
  for (const float v : y) {
    ASSERT_THAT(v, testing::AnyOf(0.0f, 4.0f));
    kept += v > 0 ? 1 : 0;
  }
  EXPECT_NEAR(kept / 100000, 0.25, 5 * std::sqrt(0.25 * 0.75 / 100000));
}

TEST_F(RandomOps, TheGradientOfDropoutHasTheSameMask) {
  const Value x = graph_.variable("x", {1000});
  feeds_["x"] = Tensor::of<float>({1000}, std::vector<float>(1000, 1));
  const Value other = dropout(x, 0.5), y = dropout(x, 0.5);
  const Gradient dx = differentiate(reduce_sum(y), {&x, 1})[0];
  const StepIdentity step{1, 2, 3};
  EXPECT_EQ(floats(dx.dense, step, 3), floats(y, step));
  EXPECT_NE(floats(other, step), floats(y, step));
}

}  // namespace
}  // namespace paceline
