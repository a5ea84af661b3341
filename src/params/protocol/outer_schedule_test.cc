#include "params/protocol/outer_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using ::testing::ElementsAre;

TEST(OuterSchedule, OneFragmentHasAllTrainedVariablesAndARoundAllSteps) {
  const std::int64_t bytes[] = {4, 0, 8};
  const OuterSchedule schedule(bytes, 20, 1);
  EXPECT_EQ(schedule.fragments(), 1);
  EXPECT_THAT(schedule.variables_of(0), ElementsAre(2, 0));
  EXPECT_EQ(schedule.steps_of(3), 60);
  EXPECT_EQ(schedule.length(7), 20);
}

TEST(OuterSchedule, FragmentsAreOfLikeSizeAndEachIsFollowedByStepsLikeItsBytes) {
  const std::int64_t bytes[] = {800, 100, 100, 1000};
  const OuterSchedule schedule(bytes, 20, 3);
  EXPECT_THAT(schedule.variables_of(0), ElementsAre(3));
  EXPECT_THAT(schedule.variables_of(1), ElementsAre(0));
  EXPECT_THAT(schedule.variables_of(2), ElementsAre(1, 2));
  EXPECT_EQ(schedule.length(1), 10);  // the link sends the 1,000 bytes meanwhile
  EXPECT_EQ(schedule.length(2), 8);
  EXPECT_EQ(schedule.length(3), 2);
  EXPECT_EQ(schedule.fragment_of_round(5), 2);
}

TEST(OuterSchedule, StepsAndRoundsFollowFromEachOther) {
  const std::int64_t bytes[] = {800, 1, 1, 1, 1000};
  for (const int local_steps : {1, 2, 4, 5, 250}) {
    const OuterSchedule schedule(bytes, local_steps, 4);
    EXPECT_LE(schedule.fragments(), local_steps);
    EXPECT_EQ(schedule.steps_of(schedule.fragments()), local_steps);
    for (std::int64_t round = 0; round < 20; ++round) {
      const std::int64_t steps = schedule.steps_of(round);
      EXPECT_GE(schedule.length(round), 1);
      EXPECT_EQ(schedule.rounds_of(steps), round);
      EXPECT_EQ(schedule.rounds_for(steps), round);
      EXPECT_EQ(schedule.rounds_for(steps + 1), round + 1);
      EXPECT_EQ(schedule.rounds_of(schedule.steps_of(round + 1) - 1), round);
    }
  }
}

TEST(OuterSchedule, NothingThatIsTrainedIsOneFragmentOfNothing) {
  const std::int64_t bytes[] = {0};
  EXPECT_EQ(OuterSchedule(bytes, 4, 2).fragments(), 1);
}

}  // namespace
}  // namespace paceline
