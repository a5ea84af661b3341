// A user must see that a run diverged: ops that look for the largest element keep NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/evaluate.h"
#include "kernels/testing/each_instruction_set.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

class NanTest : public testing::TestWithParam<const char*> {
 protected:
  NanTest() {
    DeviceOptions options;
    options.kind = GetParam();
    options.threads = 3;
    device_ = make_device(options, clock_);
  }

  /// Returns the value of `of`(x).
  template <typename F>
  Tensor evaluate(const Tensor& x, const F& of) {
    Graph graph;
    const Value y = of(graph, graph.input("x", x.shape()));
    return evaluate_graph({&y, 1}, {{"x", x}}, *device_)[0];
  }

  RealClock clock_;
  std::unique_ptr<Device> device_;
};

INSTANTIATE_TEST_SUITE_P(Devices, NanTest, testing::Values("naive", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

/// Returns a tensor of ones, with NaN as element `at`.
Tensor with_nan(const Shape& shape, std::int64_t at) {
  Tensor x(DType::kFloat32, shape);
  std::ranges::fill(x.data<float>(), 1.0f);
  x.data<float>()[std::size_t(at)] = std::numeric_limits<float>::quiet_NaN();
  return x;
}

std::int64_t nans_of(const Tensor& y) {
  return std::ranges::count_if(y.data<float>(), [](float value) { return std::isnan(value); });
}

TEST_P(NanTest, IsTheLargestOfItsRowOrColumn) {
  with_each_instruction_set([&] {
    for (const std::int64_t axis : {0, 1}) {
      for (std::int64_t at = 0; at < 5 * 37; ++at) {
        const Tensor y =
            evaluate(with_nan({5, 37}, at), [&](Graph&, Value x) { return reduce_max(x, {axis}); });
        EXPECT_EQ(nans_of(y), 1) << at << " over " << axis;
        EXPECT_TRUE(std::isnan(y.data<float>()[std::size_t(axis == 1 ? at / 37 : at % 37)]));
      }
    }
  });
}

// The row is long enough to be reduced in three pieces.
TEST_P(NanTest, IsTheLargestOfALongRowWhereverItIs) {
  constexpr std::int64_t kSize = 3 * 16 * 1024 - 5;
  with_each_instruction_set([&] {
    for (const std::int64_t at : {std::int64_t{0}, kSize / 2, kSize - 20, kSize - 1}) {
      const Tensor y =
          evaluate(with_nan({kSize}, at), [](Graph&, Value x) { return reduce_max(x); });
      EXPECT_EQ(nans_of(y), 1) << at;
    }
  });
}

// Tests channels that fill no vector, channels that fill one, and both layouts.
TEST_P(NanTest, IsTheMaximumOfItsWindow) {
  for (const bool last : {false, true}) {
    const Shape shape = last ? Shape{1, 2, 2, 19} : Shape{1, 19, 2, 2};
    for (std::int64_t at = 0; at < shape.elements(); ++at) {
      const Tensor y = evaluate(with_nan(shape, at), [&](Graph& graph, Value x) {
        Attributes attributes = max_pool2d(graph.input("image", {1, 19, 2, 2})).node().attributes();
        attributes.set("channels_last", last);
        return graph.add("max_pool2d", {&x, 1}, attributes).output(0);
      });
      EXPECT_EQ(nans_of(y), 1) << at;
      EXPECT_TRUE(std::isnan(y.data<float>()[std::size_t(last ? at % 19 : at / 4)])) << at;
    }
  }
}

TEST_P(NanTest, AmongTheLogitsGivesALossOfNan) {
  with_each_instruction_set([&] {
    for (std::int64_t at = 0; at < 37; ++at) {
      const Tensor y = evaluate(with_nan({2, 37}, at), [](Graph& graph, Value x) {
        return softmax_cross_entropy(x, graph.constant(Tensor::of<std::int32_t>({2}, {3, 3})));
      });
      EXPECT_TRUE(std::isnan(y.data<float>()[0])) << at;
      EXPECT_EQ(nans_of(y), 1) << at;
    }
  });
}

}  // namespace
}  // namespace paceline
