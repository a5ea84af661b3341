#include "kernels/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

class EvaluateTest : public testing::Test {
 protected:
  RealClock clock_;
  std::unique_ptr<Device> cpu_ = make_device({}, clock_);
  Graph graph_;
};

TEST_F(EvaluateTest, ComputesWhatTheRootsNeed) {
  const Value x = graph_.input("x", {2});
  exp(graph_.input("not_fed", {2}));
  const Value y = add(scale(x, 3), graph_.constant(Tensor::of<float>({2}, {10, 20})));
  const Value roots[] = {y, reshape(y, {2, 1})};
  const auto values = evaluate_graph(roots, {{"x", Tensor::of<float>({2}, {1, 2})}}, *cpu_);
  EXPECT_THAT(values[0].data<float>(), testing::ElementsAre(13, 26));
  EXPECT_EQ(values[1].shape(), Shape({2, 1}));
}

TEST_F(EvaluateTest, AMissingOrWrongFeedIsNamed) {
  const Value y = exp(graph_.input("x", {2}));
  EXPECT_THROW(evaluate_graph({&y, 1}, {}, *cpu_), Error);
  try {
    evaluate_graph({&y, 1}, {{"x", Tensor::of<float>({3}, {1, 2, 3})}}, *cpu_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[evaluate] x is float32 (2), fed with float32 (3)");
  }
}

TEST_F(EvaluateTest, ConstantsAreFolded) {
  const Value c = graph_.constant(Tensor::of<float>({2}, {1, 2}));
  const Value y = mul(graph_.input("x", {2}), square(scale(c, 3)));
  KernelConstantEvaluator evaluator(*cpu_);
  RewriteOptions options;
  options.fuse = false;
  const RewrittenGraph folded = rewrite(graph_, {&y, 1}, false, options, &evaluator);
  const Node& constant = folded.roots[0].node().input(1).node();
  ASSERT_EQ(constant.op().name, "constant");
  EXPECT_THAT(constant.attributes().get<Tensor>("value").data<float>(),
              testing::ElementsAre(9, 36));
}

}  // namespace
}  // namespace paceline
