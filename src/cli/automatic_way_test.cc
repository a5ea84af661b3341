#include "cli/automatic_way.h"

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
    const Words& arguments, std::vector<ComparedWay> ways,
    const std::function<void(const Words&)>& check = [](const Words&) {}) {
  return with_fastest_way(arguments, *parse(kLine, arguments), std::move(ways), check);
}

TEST(AutomaticWay, IsTheFastest) {
  EXPECT_THAT(chosen({"--strategy", "auto", "--quiet"},
                     {{.strategy = {"async"}, .ps = 1, .workers = 2, .steps_per_s = 10},
                      {.strategy = {"sync"}, .ps = 2, .workers = 4, .steps_per_s = 12}}),
              ElementsAre("--quiet", "--ps", "2", "--workers", "4", "--strategy", "sync"));
}

TEST(AutomaticWay, IsSaidOfTheNumberOfAllWays) {
  const ComparedWay sync{.strategy = {"sync"}, .ps = 1, .workers = 4, .steps_per_s = 100};
  ::testing::internal::CaptureStdout();
  chosen({"--strategy", "auto"}, {sync});
  chosen({"--strategy", "auto"}, {sync, sync});
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr(": of 1 way takes "), HasSubstr(": of 2 ways takes ")));
}

TEST(AutomaticWay, LeavesWhatTheUserGave) {
  EXPECT_THAT(chosen({"--workers=4", "--strategy=auto"},
                     {{.strategy = {"sync"}, .ps = 2, .workers = 4, .steps_per_s = 12}}),
              ElementsAre("--workers=4", "--ps", "2", "--strategy", "sync"));
}

TEST(AutomaticWay, OfLocalStepsMustBringATenth) {
  const ComparedWay sync{.strategy = {"sync"}, .ps = 1, .workers = 4, .steps_per_s = 100};
  ComparedWay local{.strategy = {"local_sgd"}, .ps = 1, .workers = 4, .steps_per_s = 109};
  EXPECT_EQ(by_preference({local, sync}).front().strategy.name, "sync");
  local.steps_per_s = 111;
  EXPECT_EQ(by_preference({sync, local}).front().strategy.name, "local_sgd");
}

TEST(AutomaticWay, OfMoreTasksMustBringAFiftieth) {
  const ComparedWay alone{.strategy = {"alone"}, .steps_per_s = 100};
  ComparedWay two{.strategy = {"async"}, .ps = 1, .workers = 2, .steps_per_s = 101};
  EXPECT_THAT(chosen({"--strategy", "auto"}, {two, alone}), ElementsAre("--strategy", "alone"));
  two.steps_per_s = 103;
  EXPECT_EQ(by_preference({alone, two}).front().strategy.name, "async");
}

TEST(AutomaticWay, GoesWithTheOtherFlags) {
  const std::vector<ComparedWay> ways = {
      {.strategy = {"hybrid"}, .ps = 1, .workers = 4, .steps_per_s = 20},
      {.strategy = {"async"}, .ps = 1, .workers = 4, .steps_per_s = 10}};
  const auto refuse_hybrid = [](const Words& words) {
    if (words.back() == "hybrid") throw Error(ErrorCode::kUsage, "not with these flags");
  };
  EXPECT_EQ(chosen({"--strategy", "auto"}, ways, refuse_hybrid).back(), "async");
  const auto fail = [](const Words&) { throw Error(ErrorCode::kInternal, "another error"); };
  EXPECT_THROW(chosen({"--strategy", "auto"}, ways, fail), Error);
}

TEST(AutomaticWay, StaysOpenWhereNothingCanBeCompared) {
  EXPECT_THAT(chosen({"--strategy", "auto"}, {}), ElementsAre("--strategy", "auto"));
}

}  // namespace
}  // namespace paceline
