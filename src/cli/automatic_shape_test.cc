#include "cli/automatic_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const CommandLine kLine = {"train",
                           "",
                           "",
                           {{"--strategy", "NAME", "", ""},
                            {"--ps", "M", "", ""},
                            {"--workers", "N", "", ""},
                            {"--quiet", "", "", ""}}};

Words chosen(
    const Words& arguments, std::vector<Prediction> shapes,
    const std::function<void(const Words&)>& check = [](const Words&) {}) {
  return with_fastest_shape(arguments, *parse(kLine, arguments), std::move(shapes), check);
}

TEST(AutomaticShape, IsTheFastest) {
  EXPECT_THAT(chosen({"--strategy", "auto", "--quiet"},
                     {{.shape = {.strategy = {"async"}, .ps = 1, .workers = 2}, .steps_per_s = 10},
                      {.shape = {.strategy = {"sync"}, .ps = 2, .workers = 4}, .steps_per_s = 12}}),
              ElementsAre("--quiet", "--ps", "2", "--workers", "4", "--strategy", "sync"));
}

TEST(AutomaticShape, IsSaidOfTheNumberOfAllWays) {
  const Prediction sync{.shape = {.strategy = {"sync"}, .ps = 1, .workers = 4}, .steps_per_s = 100};
  ::testing::internal::CaptureStdout();
  chosen({"--strategy", "auto"}, {sync});
  chosen({"--strategy", "auto"}, {sync, sync});
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr(": of 1 way takes "), HasSubstr(": of 2 ways takes ")));
}

TEST(AutomaticShape, LeavesWhatTheUserGave) {
  EXPECT_THAT(chosen({"--workers=4", "--strategy=auto"},
                     {{.shape = {.strategy = {"sync"}, .ps = 2, .workers = 4}, .steps_per_s = 12}}),
              ElementsAre("--workers=4", "--ps", "2", "--strategy", "sync"));
}

TEST(AutomaticShape, OfLocalStepsMustBringATenth) {
  const Prediction sync{.shape = {.strategy = {"sync"}, .ps = 1, .workers = 4}, .steps_per_s = 100};
  Prediction local{.shape = {.strategy = {"local_sgd"}, .ps = 1, .workers = 4}, .steps_per_s = 109};
  EXPECT_EQ(by_preference({local, sync}).front().shape.strategy.name, "sync");
  local.steps_per_s = 111;
  EXPECT_EQ(by_preference({sync, local}).front().shape.strategy.name, "local_sgd");
}

TEST(AutomaticShape, OfMoreTasksMustBringAFiftieth) {
  const Prediction alone{.shape = {.strategy = {"alone"}}, .steps_per_s = 100};
  Prediction two{.shape = {.strategy = {"async"}, .ps = 1, .workers = 2}, .steps_per_s = 101};
  EXPECT_THAT(chosen({"--strategy", "auto"}, {two, alone}), ElementsAre("--strategy", "alone"));
  two.steps_per_s = 103;
  EXPECT_EQ(by_preference({alone, two}).front().shape.strategy.name, "async");
}

TEST(AutomaticShape, GoesWithTheOtherFlags) {
  const std::vector<Prediction> shapes = {
      {.shape = {.strategy = {"hybrid"}, .ps = 1, .workers = 4}, .steps_per_s = 20},
      {.shape = {.strategy = {"async"}, .ps = 1, .workers = 4}, .steps_per_s = 10}};
  const auto refuse_hybrid = [](const Words& words) {
    if (words.back() == "hybrid") throw Error(ErrorCode::kUsage, "not with these flags");
  };
  EXPECT_EQ(chosen({"--strategy", "auto"}, shapes, refuse_hybrid).back(), "async");
  const auto fail = [](const Words&) { throw Error(ErrorCode::kInternal, "another error"); };
  EXPECT_THROW(chosen({"--strategy", "auto"}, shapes, fail), Error);
}

TEST(AutomaticShape, StaysOpenWhereNothingCanBeCompared) {
  EXPECT_THAT(chosen({"--strategy", "auto"}, {}), ElementsAre("--strategy", "auto"));
}

}  // namespace
}  // namespace paceline
