#include "cluster/report/time_in_words.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TaskReport worker(double compute, double pull) {
  TaskReport task;
  task.task = "worker:0";
  task.steps_per_s = 10;
  task.share = {{"input", 1 - compute - pull}, {"compute", compute}, {"pull", pull}, {"apply", 0}};
  return task;
}

TEST(TimeInWords, NamesTheLargestShareAndWhatTheWorkWouldAllow) {
  EXPECT_EQ(
      time_in_words(worker(0.25, 0.71)),
      "Most of the time (71%) went to waiting for values from the ps; kernels and rules alone "
      "would allow 40 steps/s.");
  EXPECT_EQ(
      time_in_words(worker(0.5, 0.25)),
      "The largest part of the time (50%) went to kernels; kernels and rules alone would allow "
      "20 steps/s.");
}

TEST(TimeInWords, SaysNoMoreWhereKernelsTakeAllOfIt) {
  EXPECT_EQ(time_in_words(worker(0.98, 0.01)), "Most of the time (98%) went to kernels.");
}

TEST(TimeInWords, IsEmptyWithoutATimedStep) {
  TaskReport task = worker(0.5, 0.5);
  task.steps_per_s.reset();
  EXPECT_EQ(time_in_words(task), "");
}

}  // namespace
}  // namespace paceline
