#include "params/protocol/ask_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/virtual_time.h"
#include "params/protocol/change_subscriptions.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::Le;
using ::testing::Lt;

TEST(AskAhead, PullsWhatNoFetchStepHasBrought) {
  EXPECT_TRUE(AskAhead::must_pull({.by_fetch = false}));
  EXPECT_FALSE(AskAhead::must_pull({.by_fetch = true}));
}

TEST(AskAhead, PullsAChangedValueUnlessTheNewestHasComeByItself) {
  EXPECT_TRUE(AskAhead::must_pull({.by_fetch = true, .changed = true}));
  EXPECT_FALSE(AskAhead::must_pull(
      {.by_fetch = true, .changed = true, .next_came = true, .next_is_newest = true}));
  EXPECT_TRUE(AskAhead::must_pull({.by_fetch = true, .changed = true, .next_came = true}));
}

TEST(AskAhead, OfAValueThatChangesAfterEachReadTheNextOneIsOnItsWay) {
  EXPECT_FALSE(AskAhead::must_pull(
      {.by_fetch = true, .changes_after_reads = true, .changed = true, .next_asked = true}));
  EXPECT_TRUE(AskAhead::must_pull({.by_fetch = true, .changes_after_reads = true}));
}

TEST(AskAhead, AsksOnceItHasSeenAChangeAndOnceAStep) {
  AskAhead ahead(1);
  ahead.pulled(0, {});
  EXPECT_FALSE(ahead.needed(0, false, true, 1).ask_next) << "the first pull is of no change";
  ahead.pulled(0, {.by_fetch = true, .changed = true});
  EXPECT_TRUE(ahead.needed(0, false, true, 2).ask_next);
  EXPECT_FALSE(ahead.needed(0, true, true, 2).take_next) << "the step has decided";
  const AskAhead::Decision third = ahead.needed(0, true, true, 3);
  EXPECT_TRUE(third.take_next && third.ask_next);
  EXPECT_FALSE(ahead.needed(0, false, true, 4).ask_next) << "it has not changed";
}

TEST(AskAhead, DoesNotAskForWhatTakesSeveralFrames) {
  AskAhead ahead(1);
  ahead.pulled(0, {.by_fetch = true});
  EXPECT_FALSE(ahead.needed(0, false, false, 1).ask_next);
}

TEST(AskAhead, RestsForSixteenPullsAfterAValueThatCameTooEarly) {
  AskAhead ahead(1);
  ahead.pulled(0, {.by_fetch = true, .next_came = true});
  for (int step = 1; step <= 16; ++step) {
    EXPECT_FALSE(ahead.needed(0, false, true, step).ask_next) << step;
    ahead.pulled(0, {.by_fetch = true});
  }
  EXPECT_TRUE(ahead.needed(0, false, true, 17).ask_next);
}

TEST(AskAhead, WaitsOnlyForAValueThatIsSureToCome) {
  AskAhead ahead(1);
  EXPECT_TRUE(ahead.waits(0, true, true, 1));
  EXPECT_FALSE(ahead.waits(0, true, false, 1));
  EXPECT_FALSE(ahead.waits(0, false, true, 1));
  ahead.needed(0, true, true, 1);
  EXPECT_FALSE(ahead.waits(0, true, true, 1)) << "the next one is the next step's";
}

TEST(ChangeSubscriptions, AListenerIsToldOfOneChange) {
  ChangeSubscriptions<int> subscriptions;
  subscriptions.subscribe(1, 0);
  subscriptions.subscribe(2, 0);
  EXPECT_EQ(subscriptions.changed(1).size(), 2u);
  EXPECT_TRUE(subscriptions.changed(2).empty());
}

TEST(ChangeSubscriptions, WhoWantsTheNextValuesIsSentThemAtOnceIfTheyAreThere) {
  ChangeSubscriptions<int> subscriptions;
  EXPECT_FALSE(subscriptions.subscribe_after(1, 3, 4));
  EXPECT_TRUE(subscriptions.empty());
  EXPECT_TRUE(subscriptions.subscribe_after(1, 4, 4));
  const auto told = subscriptions.changed(5);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told.front().wants_values);
}

TEST(ChangeSubscriptions, AListenerThatHasSeenTheChangeWaitsForTheNext) {
  ChangeSubscriptions<int> subscriptions;
  subscriptions.subscribe(1, 6);
  EXPECT_TRUE(subscriptions.changed(6).empty());
  EXPECT_EQ(subscriptions.changed(7).size(), 1u);
}

/// One worker fetches one value in virtual time. The value changes on the ps, at a pace of its own.
/// The ps uses ChangeSubscriptions, the worker AskAhead, and the link takes 1 ms each way. In each
/// step, kernels begin when the value has arrived; the step ends when they have run.
class Fetching {
 public:
  Fetching(Duration kernels, Duration changes, bool asks_ahead)
      : kernels_(kernels), changes_(changes), asks_ahead_(asks_ahead) {
    time_.after(changes_ / 2, [this] { change(); });
    begin();
  }

  struct Result {
    double ms_per_step = 0;
    std::int64_t pulls = 0, ahead = 0;
  };
  Result run() {
    while (step_ < kSteps && time_.run_one()) {
    }
    result_.ms_per_step = time_.seconds() * 1e3 / kSteps;
    return result_;
  }

 private:
  static constexpr int kSteps = 200;
  static constexpr Duration kDelay = 1ms;

  // The ps.
  void change() {
    ++version_;
    for (const auto& subscription : subscriptions_.changed(version_)) {
      if (subscription.wants_values) {
        send_ahead();
      } else {
        time_.after(kDelay, [this, version = version_] { newest_ = std::max(newest_, version); });
      }
    }
    time_.after(changes_, [this] { change(); });
  }
  void send_ahead() {
    ++result_.ahead;
    subscriptions_.subscribe(0, version_);
    time_.after(kDelay, [this, version = version_] {
      newest_ = std::max(newest_, version);
      next_ = version;
      if (!std::exchange(next_asked_, false)) next_ = 0;  // the value is no longer wanted
    });
  }
  void on_pull() {
    subscriptions_.subscribe(0, version_);
    time_.after(kDelay, [this, version = version_] {
      newest_ = std::max(newest_, version);
      held_ = version;
      need();
    });
  }

  // The worker.
  KnownValue known() const {
    return {.by_fetch = fetched_,
            .changed = newest_ > held_,
            .next_asked = next_asked_,
            .next_came = next_ > 0,
            .next_is_newest = next_ > 0 && next_ >= newest_};
  }
  void begin() {
    ++step_;
    if (!AskAhead::must_pull(known())) return need();
    ++result_.pulls;
    ahead_.pulled(0, known());
    fetched_ = true;
    next_asked_ = false;
    next_ = 0;
    time_.after(kDelay, [this] { on_pull(); });
  }
  void need() {
    const AskAhead::Decision decision = ahead_.needed(0, next_ > held_, asks_ahead_, step_);
    if (decision.take_next) held_ = std::exchange(next_, 0);
    if (decision.ask_next) {
      next_asked_ = true;
      time_.after(kDelay, [this, held = held_] {
        if (!subscriptions_.subscribe_after(0, held, version_)) send_ahead();
      });
    }
    time_.after(kernels_, [this] { begin(); });
  }

  const Duration kernels_, changes_;
  const bool asks_ahead_;
  VirtualTime time_;
  ChangeSubscriptions<int> subscriptions_;
  AskAhead ahead_{1};
  std::uint64_t version_ = 1;                       // on the ps
  std::uint64_t held_ = 0, newest_ = 0, next_ = 0;  // in the worker
  bool fetched_ = false, next_asked_ = false;
  std::int64_t step_ = 0;
  Result result_;
};

// Without asking ahead, every step whose value has changed waits for a round trip of 2 ms.
TEST(AskAheadInVirtualTime, HidesTheRoundTripOfAValueThatChangesOnceAStep) {
  const auto ahead = Fetching(5ms, 5ms, true).run();
  const auto pulled = Fetching(5ms, 5ms, false).run();
  EXPECT_THAT(ahead.ms_per_step, Lt(5.2));
  EXPECT_THAT(pulled.ms_per_step, Gt(6.5));
}

TEST(AskAheadInVirtualTime, AsksForNothingWhileNothingChanges) {
  const auto result = Fetching(5ms, 10s, true).run();
  EXPECT_EQ(result.pulls, 1);
  EXPECT_EQ(result.ahead, 0);
}

// If the worker knows of a newer value, the value that arrives ahead is useless. After each useless
// value the worker pulls at least sixteen times.
TEST(AskAheadInVirtualTime, PullsAValueThatChangesFasterThanItIsFetched) {
  const auto result = Fetching(10ms, 1ms, true).run();
  EXPECT_THAT(result.pulls, Ge(180));
  EXPECT_THAT(result.ahead, AllOf(Gt(0), Le(result.pulls / 16 + 1)));
}

}  // namespace
}  // namespace paceline
