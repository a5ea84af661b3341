#include "predict/measured_machine.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(KernelSeconds, AreTheComputingShareOfAStep) {
  TaskReport task;
  EXPECT_EQ(kernel_seconds(task), std::nullopt);
  task.steps_per_s = 10;
  EXPECT_EQ(kernel_seconds(task), std::nullopt);
  task.share = {{"input", 0.2}, {"compute", 0.8}};
  EXPECT_DOUBLE_EQ(kernel_seconds(task).value(), 0.08);
}

TEST(KernelSeconds, DoNotCountTheTimeOfOtherPrograms) {
  TaskReport task;
  task.steps_per_s = 10;
  task.share = {{"compute", 0.8}};
  task.use.pressure.waited = 0.75;
  EXPECT_DOUBLE_EQ(kernel_seconds(task).value(), 0.02);
}

}  // namespace
}  // namespace paceline
