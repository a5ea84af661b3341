#include "run/report/expected_in_words.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

Report run_with(const std::optional<ExpectedSpeed>& expected, std::optional<double> made) {
  Report run;
  run.expected = expected;
  run.tasks.emplace_back().task = "worker:0";
  run.tasks[0].steps = 20;
  run.tasks[0].steps_per_s = made;
  return run;
}

TEST(ExpectedInWords, SaysBothSpeeds) {
  EXPECT_EQ(expected_in_words(run_with(ExpectedSpeed{11.2, 10.6, 11.7, "the link"}, 11.0)),
            "Expected 11.2 steps/s (10.6 to 11.7) and made 11.");
}

TEST(ExpectedInWords, SaysHowFarASpeedIsOutside) {
  EXPECT_EQ(expected_in_words(run_with(ExpectedSpeed{10, 9, 11, "the link"}, 5.0)),
            "Expected 10 steps/s (9 to 11) and made 5: 0.50 of it.");
}

TEST(ExpectedInWords, IsSilentWithoutOneOfThem) {
  EXPECT_EQ(expected_in_words(run_with({}, 5.0)), "");
  EXPECT_EQ(expected_in_words(run_with(ExpectedSpeed{}, {})), "");
}

TEST(ExpectedInWords, TheReportKeepsIt) {
  const Report run = run_with(ExpectedSpeed{11.2, 10.6, 11.7, "the link"}, 11.0);
  EXPECT_EQ(Report::from_json(run.to_json()).expected, run.expected);
}

}  // namespace
}  // namespace paceline
