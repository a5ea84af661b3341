// Tests the shapes that ops on images infer, and their errors for shapes that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::HasSubstr;

class ImageErrorsTest : public testing::Test {
 protected:
  Value x(const Shape& shape, DType dtype = DType::kFloat32) {
    return graph_.input("x" + std::to_string(count_++), shape, dtype);
  }
  template <typename F>
  std::string message_of(F&& f) {
    return error_of(ErrorCode::kInvalidArgument, f);
  }
  Graph graph_;
  int count_ = 0;
};

TEST_F(ImageErrorsTest, ConvolutionsHaveTensorFlowsExtents) {
  const Value images = x({2, 3, 7, 8}), weights = x({5, 3, 3, 2});
  EXPECT_EQ(conv2d(images, weights).shape(), (Shape{2, 5, 7, 8}));
  EXPECT_EQ(conv2d(images, weights, {.strides = {2, 3}}).shape(), (Shape{2, 5, 4, 3}));
  EXPECT_EQ(conv2d(images, weights, {.padding = Padding::valid()}).shape(), (Shape{2, 5, 5, 7}));
  EXPECT_EQ(conv2d(images, weights, {.padding = Padding::of(1, 2, 3, 4)}).shape(),
            (Shape{2, 5, 9, 13}));
  EXPECT_EQ(conv2d(images, weights, {.padding = Padding::valid(), .dilations = {3, 7}}).shape(),
            (Shape{2, 5, 1, 1}));
  EXPECT_EQ(conv2d(images, x({6, 1, 3, 3}), {.groups = 3}).shape(), (Shape{2, 6, 7, 8}));
}

TEST_F(ImageErrorsTest, TheOddRowOfSamePaddingComesLast) {
  const Value y = conv2d(x({1, 1, 6, 5}), x({1, 1, 3, 3}), {.strides = {2, 2}});
  EXPECT_EQ(y.node().attributes().get<std::vector<std::int64_t>>("pads"),
            (std::vector<std::int64_t>{0, 1, 1, 1}));
}

TEST_F(ImageErrorsTest, Convolutions) {
  EXPECT_EQ(message_of([&] {
              conv2d(x({3, 8, 8}), x({4, 3, 3, 3}));
            }),
            "[conv2d] x is (3,8,8); 4 dimensions are needed");
  EXPECT_EQ(message_of([&] {
              conv2d(x({2, 3, 8, 8}), x({4, 2, 3, 3}));
            }),
            "[conv2d] cannot convolve 3 channels with weights (4,2,3,3) in 1 group");
  EXPECT_EQ(message_of([&] {
              conv2d(x({2, 4, 8, 8}), x({3, 2, 3, 3}), {.groups = 2});
            }),
            "[conv2d] cannot convolve 4 channels with weights (3,2,3,3) in 2 groups");
  EXPECT_EQ(message_of([&] {
              conv2d(x({2, 3, 2, 8}), x({4, 3, 3, 3}), {.padding = Padding::valid()});
            }),
            "[conv2d] a window of (3,3) does not fit (2,3,2,8) padded by (0,0,0,0)");
  EXPECT_THAT(message_of([&] {
                conv2d(x({2, 3, 8, 8}), x({4, 3, 3, 3}), {.strides = {0, 1}});
              }),
              HasSubstr("strides (0,1)"));
  EXPECT_EQ(message_of([&] {
              conv2d(x({2, 3, 8, 8}), x({4, 3, 3, 3}), x({3}));
            }),
            "[conv2d] biases is (3), not (4)");
}

TEST_F(ImageErrorsTest, ConvolutionsCountTheirFlops) {
  const Value y = conv2d(x({2, 3, 8, 8}), x({4, 3, 3, 3}));
  EXPECT_EQ(y.node().op().cost(y.node()).flops, 2.0 * 2 * 4 * 64 * 27);
}

TEST_F(ImageErrorsTest, Pools) {
  EXPECT_EQ(max_pool2d(x({2, 3, 9, 8})).shape(), (Shape{2, 3, 4, 4}));
  EXPECT_EQ(avg_pool2d(x({2, 3, 9, 8}), {.size = {3, 3}, .padding = Padding::same()}).shape(),
            (Shape{2, 3, 5, 4}));
  EXPECT_EQ(message_of([&] {
              max_pool2d(x({2, 3, 8, 8}), {.padding = Padding::of(2, 0, 0, 0)});
            }),
            "[max_pool2d] padding (2,0,0,0) is as wide as a window of (2,2)");
  EXPECT_THAT(message_of([&] {
                avg_pool2d(x({2, 3, 32, 32}), {.size = {17, 16}});
              }),
              HasSubstr("a window of (17,16) has more than 256 elements"));
  EXPECT_THAT(message_of([&] {
                max_pool2d(x({2, 3, 1, 8}));
              }),
              HasSubstr("[max_pool2d] a window of (2,2) does not fit (2,3,1,8)"));
}

TEST_F(ImageErrorsTest, Norms) {
  EXPECT_EQ(message_of([&] {
              batch_norm(x({2, 3, 4, 4}), x({3}), x({4}));
            }),
            "[batch_norm] offsets is (4), not (3)");
  EXPECT_EQ(message_of([&] {
              batch_norm(x({0, 3, 4, 4}), x({3}), x({3}));
            }),
            "[batch_norm] no statistics of no images: (0,3,4,4)");
  EXPECT_EQ(message_of([&] {
              batch_norm(x({2, 3, 4, 4}), x({3}), x({3}), 0);
            }),
            "[batch_norm] epsilon is 0; it must be above 0");
  EXPECT_EQ(message_of([&] {
              batch_norm_inference(x({2, 3, 4, 4}), x({3}), x({3}), x({3}), x({1}));
            }),
            "[batch_norm_inference] variances is (1), not (3)");
  EXPECT_EQ(message_of([&] {
              local_response_norm(x({2, 3, 4, 4}), {.radius = 2, .bias = 0});
            }),
            "[local_response_norm] radius 2, bias 0, alpha 1, beta 0.5: bias must be above 0, and "
            "no other number below 0");
}

}  // namespace
}  // namespace paceline
