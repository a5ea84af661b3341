#include "params/protocol/send_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> all_next(SendLog<int>& log) {
  std::vector<int> items;
  while (log.has_next()) items.push_back(log.next());
  return items;
}

TEST(SendLog, SendsAgainWhatTheOtherSideHasNotHandled) {
  SendLog<int> log;
  for (int i = 0; i < 5; ++i) log.push(i);
  EXPECT_THAT(all_next(log), ElementsAre(0, 1, 2, 3, 4));
  log.confirm(1);
  log.go_on(3);
  log.push(5);
  EXPECT_THAT(all_next(log), ElementsAre(3, 4, 5));
  EXPECT_EQ(log.unconfirmed(), 3u);
}

TEST(SendLog, GivesBackWhatIsConfirmedAndKeepsTheRest) {
  SendLog<int> log;
  for (int i = 0; i < 3; ++i) log.push(i);
  all_next(log);
  EXPECT_FALSE(log.has_confirmed());
  log.confirm(2);
  EXPECT_EQ(log.pop(), 0);
  EXPECT_EQ(log.pop(), 1);
  EXPECT_FALSE(log.has_confirmed());
  log.push(3);
  EXPECT_EQ(log.abandon(), 2);
  EXPECT_EQ(log.abandon(), 3);
  EXPECT_TRUE(log.empty());
}

TEST(SendLog, ACountThatCannotBeIsRefused) {
  SendLog<int> log;
  for (int i = 0; i < 3; ++i) log.push(i);
  log.next();
  log.next();
  log.confirm(1);
  const auto why = [&](std::uint64_t handled) -> std::string {
    try {
      log.go_on(handled);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(why(3), HasSubstr("it has handled 3 messages; it has confirmed 1 before, and 2 "));
  EXPECT_THAT(why(0), HasSubstr("it has handled 0 messages"));
  EXPECT_EQ(why(2), "");
}

TEST(HandledCount, IsToldAtOnceWhereItMattersAndElseNowAndThen) {
  HandledCount count;
  EXPECT_TRUE(count.handled(true));
  for (std::uint64_t i = 1; i < HandledCount::kMostUnconfirmed; ++i) {
    EXPECT_FALSE(count.handled(false));
  }
  EXPECT_TRUE(count.handled(false));
  EXPECT_EQ(count.count(), HandledCount::kMostUnconfirmed + 1);
}

// A simulated connection has a queue in each direction. At any time it may be cut: then the items
// in both queues are lost. Confirmations travel like items.
TEST(SendLog, HoweverOftenItIsCutEachItemIsHandledOnceAndInOrder) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    SendLog<int> log;
    HandledCount handled;
    std::deque<int> there;
    std::deque<std::uint64_t> back;
    std::vector<int> received;
    int pushed = 0;
    while (received.size() < 500) {
      if (pushed < 500) log.push(pushed++);
      if (random() % 2 == 0 && log.has_next()) there.push_back(log.next());
      if (random() % 2 == 0 && !there.empty()) {
        received.push_back(there.front());
        there.pop_front();
        if (handled.handled(random() % 8 == 0)) back.push_back(handled.count());
      }
      if (random() % 2 == 0 && !back.empty()) {
        log.confirm(back.front());
        back.pop_front();
        while (log.has_confirmed()) log.pop();
      }
      if (random() % 50 == 0) {
        there.clear();
        back.clear();
        log.go_on(handled.count());
      }
    }
    for (int i = 0; i < 500; ++i) ASSERT_EQ(received[std::size_t(i)], i) << "seed " << seed;
  }
}

}  // namespace
}  // namespace paceline
