// Tests that inputs which do not fit are refused when the node is added, with the op and the
// shapes.
#include <gmock/gmock.h>

#include "base/testing/error_of.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <typename F>
std::string shape_message_of(F&& f) {
  return error_of(ErrorCode::kInvalidArgument, f);
}

class ShapeErrors : public testing::Test {
 protected:
  Value x(const Shape& shape, DType dtype = DType::kFloat32) {
    return graph_.input("x" + std::to_string(count_++), shape, dtype);
  }
  Graph graph_;
  int count_ = 0;
};

TEST_F(ShapeErrors, Matmul) {
  EXPECT_EQ(shape_message_of([&] {
              matmul(x({3, 4}), x({5, 6}));
            }),
            "[matmul] cannot multiply (3,4) by (5,6)");
  EXPECT_EQ(shape_message_of([&] {
              matmul(x({3, 4}), x({3, 6}), false, true);
            }),
            "[matmul] cannot multiply (3,4) by (3,6)ᵀ");
  EXPECT_EQ(shape_message_of([&] {
              matmul(x({3}), x({3, 6}));
            }),
            "[matmul] cannot multiply (3) by (3,6)");
  EXPECT_THAT(shape_message_of([&] {
                matmul(x({3, 4}), x({4, 6}, DType::kFloat64));
              }),
              HasSubstr("float32 (3,4) and float64 (4,6)"));
  EXPECT_THAT(shape_message_of([&] {
                matmul(x({3, 4}, DType::kInt32), x({4, 6}, DType::kInt32));
              }),
              HasSubstr("[matmul] input 0 is int32 (3,4)"));
}

TEST_F(ShapeErrors, BatchMatmul) {
  EXPECT_EQ(shape_message_of([&] {
              matmul(x({2, 3, 4}), x({3, 4, 5}));
            }),
            "[batch_matmul] cannot multiply (2,3,4) by (3,4,5)");
  EXPECT_EQ(shape_message_of([&] {
              matmul(x({2, 3, 4}), x({2, 3, 5}), false, true);
            }),
            "[batch_matmul] cannot multiply (2,3,4) by (2,3,5)ᵀ");
  EXPECT_EQ(shape_message_of([&] {
              matmul(x({2, 3, 4}), x({4}));
            }),
            "[batch_matmul] cannot multiply (2,3,4) by (4)");
}

TEST_F(ShapeErrors, MatmulBroadcastsLeadingDimensions) {
  EXPECT_EQ(matmul(x({2, 1, 3, 4}), x({5, 4, 6})).shape(), (Shape{2, 5, 3, 6}));
  EXPECT_EQ(matmul(x({3, 4}), x({5, 4, 6})).shape(), (Shape{5, 3, 6}));
  EXPECT_EQ(matmul(x({5, 4, 3}), x({4, 6}), true).shape(), (Shape{5, 3, 6}));
  const Value rows = matmul(x({2, 3, 4}), x({6, 4}), false, true);
  EXPECT_EQ(rows.shape(), (Shape{2, 3, 6}));
  EXPECT_EQ(rows.node().op().name, "reshape");
}

TEST_F(ShapeErrors, Rows) {
  EXPECT_EQ(shape_message_of([&] { softmax(x({3, 0})); }), "[softmax] rows of (3,0) are empty");
  EXPECT_EQ(shape_message_of([&] { softmax(x({3, 4}), 2); }), "[softmax] has no axis 2 in (3,4)");
  EXPECT_THAT(shape_message_of([&] { softmax(x({})); }), HasSubstr("x is a scalar"));
  EXPECT_EQ(shape_message_of([&] {
              layer_norm(x({3, 4}), x({3}), x({4}));
            }),
            "[layer_norm] gains is (3), not (4)");
  EXPECT_EQ(shape_message_of([&] {
              layer_norm(x({3, 4}), x({4}), x({4}), 0);
            }),
            "[layer_norm] epsilon is 0; it must be above 0");
  EXPECT_EQ(shape_message_of([&] {
              cumulative_sum(x({3, 4}), 2);
            }),
            "[cumulative_sum] has no axis 2 in (3,4)");
  EXPECT_EQ(shape_message_of([&] { one_hot(x({3}, DType::kInt32), 0); }),
            "[one_hot] depth is 0 for ids (3)");
  EXPECT_THAT(shape_message_of([&] { one_hot(x({3}), 2); }),
              HasSubstr("ids is float32 (3); int32"));
}

TEST_F(ShapeErrors, LayerNormNamesItsVariables) {
  EXPECT_EQ(layer_norm(x({2, 8, 3}), "norm").shape(), (Shape{2, 8, 3}));
  EXPECT_EQ(graph_.find("norm/gains").shape(), (Shape{3}));
  EXPECT_EQ(graph_.find("norm/offsets").shape(), (Shape{3}));
}

TEST_F(ShapeErrors, Losses) {
  EXPECT_EQ(shape_message_of([&] {
              softmax_cross_entropy(x({3, 4}), x({4}, DType::kInt32));
            }),
            "[softmax_cross_entropy] labels is (4), not (3)");
  EXPECT_THAT(shape_message_of([&] {
                softmax_cross_entropy(x({3, 4}), x({3}));
              }),
              HasSubstr("int32 is needed"));
  EXPECT_EQ(shape_message_of([&] {
              mean_squared_error(x({3, 4}), x({4, 3}));
            }),
            "[mean_squared_error] cannot compare (3,4) with (4,3)");
}

TEST_F(ShapeErrors, Lstm) {
  const auto build = [&](const Shape& state, const Shape& weights) {
    return shape_message_of([&] { lstm(x({2, 3, 4}), x(state), x(state), x(weights), x({20})); });
  };
  EXPECT_EQ(build({3, 5}, {9, 20}), "");
  EXPECT_EQ(build({2, 5}, {9, 20}), "[lstm] state h is (2,5), not (3,5)");
  EXPECT_EQ(build({3, 5}, {8, 20}), "[lstm] weights is (8,20), not (9,20)");
}

TEST_F(ShapeErrors, OutOfRangeParameters) {
  EXPECT_EQ(shape_message_of([&] { dropout(x({3}), 0); }),
            "[dropout] keep is 0; it must be in (0,1]");
  EXPECT_THAT(shape_message_of([&] {
                top_k_accuracy(x({3, 4}), x({3}, DType::kInt32), 5);
              }),
              HasSubstr("k is 5; logits are (3,4)"));
  EXPECT_THAT(shape_message_of([&] { random_integers(graph_, {2}, 3, 3); }),
              HasSubstr("[3,3) is empty"));
  EXPECT_THAT(shape_message_of([&] { random_uniform(graph_, {2}, 1, 0); }),
              HasSubstr("[1,0) is empty"));
  EXPECT_THAT(shape_message_of([&] { arg_max(x({3, 0})); }), HasSubstr("(3,0)"));
}

TEST_F(ShapeErrors, DropoutThatKeepsAllAddsNothing) {
  const Value value = x({3});
  EXPECT_EQ(dropout(value, 1), value);
}

TEST_F(ShapeErrors, DenseNamesItsVariables) {
  const Value y = dense(x({8, 3}), 5, "layer1");
  EXPECT_EQ(y.shape(), (Shape{8, 5}));
  EXPECT_EQ(graph_.find("layer1/w").shape(), (Shape{3, 5}));
  EXPECT_EQ(graph_.find("layer1/b").shape(), (Shape{5}));
  EXPECT_THAT(shape_message_of([&] { dense(x({8}), 5, "layer2"); }),
              HasSubstr("[dense] 'layer2' has 5 units, and x is (8): there must be a unit, and x "
                        "must have two dimensions"));
  EXPECT_THAT(shape_message_of([&] {
                dense(x({8, 3}), 0, "layer3");
              }),
              HasSubstr("[dense] 'layer3' has 0 units"));
}

TEST_F(ShapeErrors, BatchNormTakesRowsAsImagesOfOnePixel) {
  EXPECT_EQ(batch_norm(x({8, 3}), "norm1").shape(), (Shape{8, 3}));
  EXPECT_EQ(graph_.find("norm1/gains").shape(), (Shape{3}));
  EXPECT_THAT(shape_message_of([&] {
                batch_norm(x({8, 3, 2}), "norm2");
              }),
              AllOf(HasSubstr("[batch_norm]"), HasSubstr("(8,3,2)")));
}

TEST_F(ShapeErrors, ConvolutionsNameTheirVariables) {
  const Value image = x({8, 6, 5, 5});
  EXPECT_EQ(conv2d(image, 4, 3, "conv1").shape(), (Shape{8, 4, 5, 5}));
  EXPECT_EQ(graph_.find("conv1/w").shape(), (Shape{4, 6, 3, 3}));
  EXPECT_EQ(graph_.find("conv1/b").shape(), (Shape{4}));
  const Initializer ones = Initializer::constant(1);
  EXPECT_EQ(
      conv2d(image, 4, 1, "conv2", {.strides = {2, 2}, .groups = 2}, ones, std::nullopt).shape(),
      (Shape{8, 4, 3, 3}));
  EXPECT_EQ(graph_.find("conv2/w").shape(), (Shape{4, 3, 1, 1}));
  EXPECT_THROW(graph_.find("conv2/b"), Error);
  EXPECT_THAT(shape_message_of([&] {
                conv2d(x({8, 6}), 4, 3, "conv3");
              }),
              AllOf(HasSubstr("[conv2d]"), HasSubstr("(8,6)")));
  EXPECT_THAT(shape_message_of([&] { conv2d(image, 4, 3, "conv4", {.groups = 0}); }),
              HasSubstr("groups"));
  EXPECT_THAT(shape_message_of([&] { conv2d(image, 4, 3, "conv5", {.groups = 4}); }),
              HasSubstr("groups"));
}

TEST_F(ShapeErrors, MatmulCountsItsFlops) {
  const Value y = matmul(x({4, 3}), x({4, 6}), true);
  const Cost cost = y.node().op().cost(y.node());
  EXPECT_EQ(cost.flops, 2 * 3 * 4 * 6);
  EXPECT_EQ(cost.bytes, 4 * (12 + 24 + 18));
}

}  // namespace
}  // namespace paceline
