#include "evidence/round_seconds.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

// The first of two variables is needed at once and ready at the end of the step; the second is
// needed at 0.4 s and ready at 0.7 s.
const StepSchedule kSchedule = {1, {{0, 1}, {0.4, 0.7}}};

TEST(RoundSeconds, AreThoseOfTheKernelsWhereNothingElseTakesTime) {
  EXPECT_DOUBLE_EQ(round_seconds(kSchedule, {}, {}), 1);
}

TEST(RoundSeconds, BeginWithTheValuesThatAreNeededFirst) {
  // In the first case, the first value delays all kernels by 0.3 s. In the second case, the second
  // value arrives after 0.7 s, and 0.6 s of kernels follow.
  EXPECT_DOUBLE_EQ(round_seconds(kSchedule, {.last = {{0.3, 0.3}}, .first = {}}, {}), 1.3);
  EXPECT_DOUBLE_EQ(round_seconds(kSchedule, {.last = {{0.1, 0.6}}, .first = {}}, {}), 1.3);
}

TEST(RoundSeconds, EndWithTheContributionsThatAreReadyLast) {
  EXPECT_DOUBLE_EQ(round_seconds(kSchedule, {}, {.last = {{0.2, 0.2}}, .first = {}}), 1.2);
  // The second variable, which is ready at 0.7, goes first, and then the first one.
  EXPECT_DOUBLE_EQ(round_seconds(kSchedule, {}, {.last = {{0.2, 0.4}}, .first = {}}), 1.3);
}

TEST(RoundSeconds, WaitForTheBusiestResourceAndTheSlowestWorker) {
  // In each part, two workers share one link. The second worker has its values after 1.6 s; then
  // 0.6 s of kernels follow, and its last contribution takes 0.4 s. The first worker takes longer:
  // it has its values after 0.8 s, contributes what is ready at 0.7 after 0.3 s of kernels, and the
  // link then carries 1.6 s of contributions.
  const RoundPart part{.last = {{0.8, 0.8}, {0.1, 0.1}}, .first = {{0.4, 0.4}}};
  EXPECT_DOUBLE_EQ(round_seconds(kSchedule, part, part), 0.8 + 0.3 + 1.6);
}

}  // namespace
}  // namespace paceline
