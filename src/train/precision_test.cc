#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/instruction_set.h"
#include "paceline/error.h"
#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

class PrecisionTest : public ::testing::Test {
 protected:
  PrecisionTest() { cluster_.threads = 1; }

  double loss_after(std::int64_t steps) {
    run_.steps = steps;
    Session session(minimize(loss_, Sgd{.learning_rate = 0.1f}), cluster_, run_);
    session.run([&](Feed& feed) { feed.normal(x_).normal(y_); });
    return session.last_step().loss;
  }

  Graph graph_;
  Value x_ = graph_.input("x", {16, 3}), y_ = graph_.input("y", {16, 2});
  Value loss_ = mean_squared_error(dense(x_, 2, "layer"), y_);
  Cluster cluster_;
  RunOptions run_;
};

TEST_F(PrecisionTest, NoOtherThanFloat32AndBfloat16) {
  cluster_.train.precision = DType::kFloat16;
  try {
    loss_after(1);
    FAIL() << "float16 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("cannot compute in float16: float32 or bfloat16"));
  }
}

TEST_F(PrecisionTest, AMachineWithoutBfloat16SaysOnceThatItIsNotFaster) {
  if (!limit_onednn_instruction_set("AVX2")) GTEST_SKIP() << "oneDNN has computed already";
  run_.quiet = true;
  const double exact = loss_after(20);
  run_.quiet = false;
  cluster_.train.precision = DType::kBFloat16;
  ::testing::internal::CaptureStdout();
  EXPECT_NEAR(loss_after(20), exact, 0.01 * exact);
  const std::string said = ::testing::internal::GetCapturedStdout();
  const std::string line = "multiplies bfloat16 no faster than float32";
  EXPECT_THAT(said, HasSubstr(line));
  EXPECT_EQ(said.find(line), said.rfind(line));
}

}  // namespace
}  // namespace paceline
