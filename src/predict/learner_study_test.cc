#include "predict/learner_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace paceline {
namespace {

using ::testing::HasSubstr;

LearnerTimes times_of(const LearnerStudy& study, const std::string& strategy) {
  for (const LearnerTimes& each : study_learners(study)) {
    if (each.strategy == strategy) return each;
  }
  ADD_FAILURE() << "there is no " << strategy;
  return {};
}

TEST(LearnerStudyTest, EvenLearnersThatNeverFailComputeAllTheTime) {
  for (const LearnerTimes& each : study_learners({.learners = 40})) {
    const double counted = each.strategy == "sync of 38" ? 0.95 : 1;
    EXPECT_NEAR(each.useful, counted, 1e-4) << each.strategy;
    EXPECT_NEAR(each.steps_per_s, 40 * counted, 4e-3) << each.strategy;
  }
}

TEST(LearnerStudyTest, AnExchangeIsPaidOnceForEachContribution) {
  const LearnerStudy study{.learners = 10, .step_s = 3, .exchange_s = 1, .local_steps = 5};
  EXPECT_NEAR(times_of(study, "async").useful, 0.75, 1e-3);
  EXPECT_NEAR(times_of(study, "sync").exchanging, 0.25, 1e-3);
  EXPECT_NEAR(times_of(study, "local_sgd, H = 5").useful, 15.0 / 16, 1e-3);
}

TEST(LearnerStudyTest, CountsAllTimeOfEachLearner) {
  const LearnerStudy study{.learners = 200,
                           .uneven = 0.1,
                           .mtbf_s = 3000,
                           .restart_s = 100,
                           .notice_s = 2,
                           .exchange_s = 0.2};
  for (const LearnerTimes& each : study_learners(study)) {
    EXPECT_NEAR(each.useful + each.waiting + each.exchanging + each.lost + each.away, 1, 1e-9)
        << each.strategy;
    EXPECT_GT(each.useful, 0.2) << each.strategy;
    EXPECT_GT(each.lost, 0) << each.strategy;
    EXPECT_NEAR(each.away, 100.0 / 3100, 0.003) << each.strategy;
  }
}

// Every 10 s a learner fails, and the round waits until the others notice it 2 s later. On average
// the first half second of these 2 s overlaps with the others' own step of 1 s.
TEST(LearnerStudyTest, InRoundsAllWaitUntilAFailureIsNoticed) {
  LearnerStudy study{.learners = 100, .mtbf_s = 1000, .restart_s = 10, .notice_s = 2};
  const double noticed_late = times_of(study, "sync").waiting;
  EXPECT_GT(noticed_late, 0.1);
  EXPECT_LT(noticed_late, 0.2);
  study.notice_s = 0;
  EXPECT_LT(times_of(study, "sync").waiting, 0.01);
}

TEST(LearnerStudyTest, UnevenLearnersWaitInRoundsAndNotWithoutThem) {
  std::map<std::string, LearnerTimes> by;
  for (const LearnerTimes& each : study_learners({.learners = 300, .uneven = 0.1})) {
    by[each.strategy] = each;
  }
  EXPECT_NEAR(by["async"].useful, 1, 1e-9);
  EXPECT_LT(by["sync"].useful, 0.85);
  EXPECT_GT(by["ssp 3"].useful, by["sync"].useful);
  EXPECT_LT(by["ssp 3"].useful, by["async"].useful);
  EXPECT_GT(by["local_sgd, H = 20"].useful, by["sync"].useful);
  EXPECT_GT(by["sync of 285"].useful, by["sync"].useful);
  EXPECT_GT(by["sync of 285"].lost, 0.01);
}

TEST(LearnerStudyTest, TheTableHasTheBestFirstAndSaysWhereFailuresAreFew) {
  const LearnerStudy study{.learners = 20, .uneven = 0.2, .mtbf_s = 1e7};
  const std::vector<LearnerTimes> times = study_learners(study);
  EXPECT_TRUE(std::ranges::is_sorted(times, std::greater(), &LearnerTimes::useful));
  const std::string text = learners_text(study, times);
  EXPECT_LT(text.find("async"), text.find("sync of 19"));
  EXPECT_THAT(text, HasSubstr("So few failures tell little"));
  EXPECT_THAT(text, HasSubstr("\n20 learners. "));
  EXPECT_THAT(learners_text({.learners = 1}, {}), HasSubstr("\n1 learner. "));
}

}  // namespace
}  // namespace paceline
