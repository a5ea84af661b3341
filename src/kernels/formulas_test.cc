// Tests functions that are made of several ops: numbers beside values, clip, pow, gelu,
// stop_gradient.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/testing/error_of.h"
#include "kernels/evaluate.h"
#include "paceline/error.h"
#include "paceline/minimize.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

class Formulas : public testing::Test {
 protected:
  std::vector<float> values_of(Value y) {
    const Tensor tensor = evaluate_graph({&y, 1}, {{"x", x_values_}}, *device_)[0];
    return {tensor.data<float>().begin(), tensor.data<float>().end()};
  }
  /// Returns d Σy / dx.
  std::vector<float> slopes_of(Value y) { return values_of(gradients(reduce_sum(y), {x_})[0]); }

  RealClock clock_;
  std::unique_ptr<Device> device_ = make_device({}, clock_);
  Graph graph_;
  Value x_ = graph_.input("x", {3});
  Tensor x_values_ = Tensor::of<float>({3}, {-2, 0.5f, 4});
};

TEST_F(Formulas, ANumberStandsOnEitherSideOfAnOperator) {
  EXPECT_THAT(values_of(x_ + 1), ElementsAre(-1, 1.5f, 5));
  EXPECT_THAT(values_of(1 + x_), ElementsAre(-1, 1.5f, 5));
  EXPECT_THAT(values_of(x_ - 1), ElementsAre(-3, -0.5f, 3));
  EXPECT_THAT(values_of(1 - x_), ElementsAre(3, 0.5f, -3));
  EXPECT_THAT(values_of(x_ * 2), ElementsAre(-4, 1, 8));
  EXPECT_THAT(values_of(2 * x_), ElementsAre(-4, 1, 8));
  EXPECT_THAT(values_of(x_ / 2), ElementsAre(-1, 0.25f, 2));
  EXPECT_THAT(values_of(2 / x_), ElementsAre(-1, 4, 0.5f));
  EXPECT_THAT(values_of(-x_), ElementsAre(2, -0.5f, -4));
  EXPECT_THAT(slopes_of(3 - x_ * x_), ElementsAre(4, -1, -8));
}

TEST_F(Formulas, ANumberTakesTheTypeOfItsValue) {
  const Value wide = graph_.input("wide", {2}, DType::kFloat64);
  EXPECT_EQ((wide + 0.1).dtype(), DType::kFloat64);
  const Value ids = graph_.input("ids", {2}, DType::kInt32);
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { ids + 1; }), HasSubstr("int32 (2)"));
}

TEST_F(Formulas, ComparisonsGiveOnesAndZeros) {
  const Value half = graph_.constant(Tensor::scalar(0.5f));
  EXPECT_THAT(values_of(greater(x_, 0.5)), ElementsAre(0, 0, 1));
  EXPECT_THAT(values_of(less(x_, 0.5)), ElementsAre(1, 0, 0));
  EXPECT_THAT(values_of(greater_equal(x_, half)), ElementsAre(0, 1, 1));
  EXPECT_THAT(values_of(less_equal(x_, half)), ElementsAre(1, 1, 0));
  EXPECT_THAT(values_of(equal(x_, half)), ElementsAre(0, 1, 0));
}

TEST_F(Formulas, ClipHasNoGradientBeyondItsEnds) {
  EXPECT_THAT(values_of(clip(x_, -1, 1)), ElementsAre(-1, 0.5f, 1));
  EXPECT_THAT(slopes_of(clip(x_, -1, 1)), ElementsAre(0, 1, 0));
  EXPECT_THAT(slopes_of(clip(x_, -2, 4)), ElementsAre(1, 1, 1));
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument, [&] { clip(x_, 2, 1); }),
            "[clip] cannot clip float32 (3) between 2 and 1: the first must not be above the "
            "second");
}

TEST_F(Formulas, MaximumAndMinimumKeepNan) {
  x_values_.data<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(values_of(maximum(x_, 1)), ElementsAre(1, testing::IsNan(), 4));
  EXPECT_THAT(values_of(minimum(x_, 1)), ElementsAre(-2, testing::IsNan(), 1));
}

TEST_F(Formulas, WhereTakesAConditionOfAnyType) {
  const Value flags = graph_.constant(Tensor::of<std::int32_t>({3}, {0, 7, -1}));
  EXPECT_THAT(values_of(where(flags, x_, -x_)), ElementsAre(2, 0.5f, 4));
  EXPECT_THAT(slopes_of(where(flags, x_, -x_)), ElementsAre(-1, 1, 1));
  EXPECT_THAT(values_of(where(cast(flags, DType::kBool), x_, x_ + 1)), ElementsAre(-1, 0.5f, 4));
  EXPECT_THAT(
      error_of(ErrorCode::kInvalidArgument, [&] { where(flags, x_, graph_.input("two", {2})); }),
      HasSubstr("[where] cannot broadcast (3) with (2)"));
}

TEST_F(Formulas, PowersAndTheirGradients) {
  EXPECT_THAT(values_of(pow(x_, 3)), ElementsAre(-8, 0.125f, 64));
  EXPECT_THAT(slopes_of(pow(x_, 3)), ElementsAre(12, 0.75f, 48));
  EXPECT_THAT(slopes_of(pow(x_, 0)), ElementsAre(0, 0, 0));
  EXPECT_EQ(pow(x_, 2).node().op().name, "square");
}

TEST_F(Formulas, GeluIsXTimesTheNormalDistribution) {
  const auto near = [](double x) { return FloatNear(float(x), 2e-6f); };
  EXPECT_THAT(values_of(gelu(x_)),
              ElementsAre(near(-0.0455002639), near(0.345731231), near(3.99987332)));
  EXPECT_THAT(slopes_of(gelu(x_)), ElementsAre(near(-0.0852318), near(0.8674951), near(1.000503)));
  EXPECT_THAT(values_of(gelu(x_, true)),
              ElementsAre(near(-0.0454023), near(0.3457140), near(3.99992980)));
}

TEST_F(Formulas, SoftmaxAlongAnyAxis) {
  const Value x = reshape(x_, {3, 1});
  EXPECT_THAT(values_of(softmax(x, 1)), ElementsAre(1, 1, 1));
  const auto near = [](double y) { return FloatNear(float(y), 1e-6f); };
  EXPECT_THAT(values_of(softmax(x, 0)),
              ElementsAre(near(0.00240032), near(0.02924187), near(0.96835781)));
}

TEST_F(Formulas, NoGradientGoesThroughStopGradient) {
  EXPECT_THAT(slopes_of(x_ * stop_gradient(x_)), ElementsAre(-2, 0.5f, 4));
}

}  // namespace
}  // namespace paceline
