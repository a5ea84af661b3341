#include "data/thread_tuner.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(ThreadTuner, TakesAllThreadsWhenBatchesAreUsedAtOnce) {
  ThreadTuner tuner(4);
  EXPECT_EQ(tuner.threads(), 4);
  EXPECT_EQ(tuner.update(1, 0), 4);
  EXPECT_EQ(tuner.update(1, 0.001), 4);
}

TEST(ThreadTuner, GoesDownOneByOneToWhatIsNeeded) {
  ThreadTuner tuner(4);
  EXPECT_EQ(tuner.update(0.1, 1), 3);
  EXPECT_EQ(tuner.update(0.1, 1), 2);
  EXPECT_EQ(tuner.update(0.1, 1), 1);
  EXPECT_EQ(tuner.update(0.1, 1), 1);
}

TEST(ThreadTuner, GoesUpAtOnceWithAQuarterToSpare) {
  ThreadTuner tuner(8);
  for (int i = 0; i < 8; ++i) tuner.update(0.1, 1);
  EXPECT_EQ(tuner.update(2.0, 1), 3);
  EXPECT_EQ(tuner.update(2.4, 1), 3);
  EXPECT_EQ(tuner.update(2.5, 1), 4);
}

}  // namespace
}  // namespace paceline
