#include "params/protocol/outer_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace paceline {
namespace {

using Kind = OuterTurns::Act::Kind;

/// Makes local steps, and returns what happens as text: "." is a step, "c0" a contribution of
/// fragment 0, "s" the end of its round, "t0" the arrival of its values.
std::string acts_of(const OuterSchedule& schedule, int steps) {
  OuterTurns turns(schedule, 0);
  std::int64_t closed = 0;
  std::string acts;
  for (int step = 0; step < steps; ++step) {
    acts += ".";
    turns.step_made();
    while (const auto act = turns.next()) {
      const std::string fragment = std::to_string(act->fragment);
      if (act->kind == Kind::kSettle) {
        acts += "s";
        turns.settled(++closed);
      } else if (act->kind == Kind::kTakeOver) {
        acts += "t" + fragment;
        turns.took_over(act->fragment);
      } else {
        acts += "c" + fragment;
        turns.contributed();
      }
    }
  }
  return acts;
}

TEST(OuterTurns, WithOneFragmentAWorkerWaitsForItsRoundAndItsValues) {
  const std::int64_t bytes[] = {8};
  EXPECT_EQ(acts_of({bytes, 3, 1}, 7), "...c0st0...c0st0.");
}

TEST(OuterTurns, OneFragmentIsUnderWayWhileTheNextIsGiven) {
  const std::int64_t bytes[] = {8, 8};
  EXPECT_EQ(acts_of({bytes, 4, 2}, 8), "..c0..sc1..st0c0..st1c1");
}

TEST(OuterTurns, AWorkerThatWasTooLateGoesOnWithTheRoundThatIsOpen) {
  const std::int64_t bytes[] = {8, 8, 8};
  const OuterSchedule schedule(bytes, 3, 3);
  OuterTurns turns(schedule, 0);
  turns.step_made();
  turns.contributed();
  EXPECT_TRUE(turns.unsettled());
  EXPECT_EQ(turns.rounds(), 1);
  turns.settled(2);
  EXPECT_FALSE(turns.unsettled());
  turns.step_made();
  EXPECT_EQ(turns.next(), (OuterTurns::Act{Kind::kContribute, 2}));
}

TEST(OuterTurns, WithoutRoundsAWorkerCountsItsOwnContributions) {
  const std::int64_t bytes[] = {8, 8};
  const OuterSchedule schedule(bytes, 2, 2);
  OuterTurns turns(schedule, 10, 4);
  turns.step_made();
  EXPECT_EQ(turns.next(), (OuterTurns::Act{Kind::kContribute, 0}));
  turns.contributed();
  EXPECT_EQ(turns.rounds(), 11);
  turns.step_made();
  EXPECT_EQ(turns.next(), (OuterTurns::Act{Kind::kSettle, 0}));
  turns.settled(14);  // others have contributed, too
  EXPECT_EQ(turns.next(), (OuterTurns::Act{Kind::kContribute, 1}));
}

}  // namespace
}  // namespace paceline
