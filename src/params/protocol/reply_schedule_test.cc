#include "params/protocol/reply_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/virtual_time.h"
#include "params/protocol/frame_cuts.h"
#include "params/protocol/reply_budget.h"
#include "params/protocol/testing/virtual_link.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Lt;

using Schedule = ReplySchedule<std::string>;

FrameHeader values_of(std::uint32_t piece) {
  return {.type = std::uint16_t(MessageType::kValues), .id = piece};
}

std::vector<std::string> all_that_go(Schedule& schedule) {
  std::vector<std::string> gone;
  while (auto reply = schedule.next()) gone.push_back(reply->payload);
  return gone;
}

TEST(ReplySchedule, TheFirstNeededGoesFirstAndUnrankedPiecesKeepTheirOrder) {
  Schedule schedule;
  schedule.set_order(std::vector<std::uint32_t>{7, 2});
  for (const std::uint32_t piece : {5, 2, 9, 7, 2}) {
    schedule.push(values_of(piece), 10, std::to_string(piece));
  }
  EXPECT_THAT(all_that_go(schedule), ElementsAre("7", "2", "2", "5", "9"));
}

TEST(ReplySchedule, AnOrderReplacesTheOneBefore) {
  Schedule schedule;
  schedule.set_order(std::vector<std::uint32_t>{1, 2});
  schedule.set_order(std::vector<std::uint32_t>{2});
  schedule.push(values_of(1), 10, "1");
  schedule.push(values_of(2), 10, "2");
  EXPECT_THAT(all_that_go(schedule), ElementsAre("2", "1"));
}

TEST(ReplySchedule, AStateGoesAfterAllValues) {
  Schedule schedule;
  schedule.set_order(std::vector<std::uint32_t>{4});
  schedule.push({.type = std::uint16_t(MessageType::kState), .id = 4}, 10, "state");
  schedule.push(values_of(8), 10, "values");
  EXPECT_THAT(all_that_go(schedule), ElementsAre("values", "state"));
}

TEST(ReplySchedule, TheConnectionHoldsOneWindow) {
  Schedule schedule;
  for (int i = 0; i < 4; ++i) schedule.push(values_of(0), kReplyWindowBytes / 2, "half");
  EXPECT_EQ(all_that_go(schedule).size(), 2u);
  EXPECT_FALSE(schedule.at_rest());
  schedule.sent(kReplyWindowBytes / 2);
  EXPECT_EQ(all_that_go(schedule).size(), 1u);
}

TEST(ReplySchedule, AReplyLongerThanTheWindowGoesAlone) {
  Schedule schedule;
  schedule.push(values_of(0), 3 * kReplyWindowBytes, "long");
  schedule.push(values_of(1), 1, "short");
  EXPECT_THAT(all_that_go(schedule), ElementsAre("long"));
  schedule.sent(3 * kReplyWindowBytes);
  EXPECT_THAT(all_that_go(schedule), ElementsAre("short"));
  schedule.sent(1);
  EXPECT_TRUE(schedule.at_rest());
}

TEST(ReplySchedule, AfterTheEndItGivesBackWhatIsNotSent) {
  Schedule schedule;
  for (int i = 0; i < 3; ++i) schedule.push(values_of(0), kReplyWindowBytes, "values");
  EXPECT_TRUE(schedule.next());
  EXPECT_EQ(schedule.take_waiting().size(), 2u);
  schedule.sent(kReplyWindowBytes);
  EXPECT_FALSE(schedule.next());
  EXPECT_TRUE(schedule.at_rest());
}

/// One worker's replies on a link of 1 GB/s, in virtual time.
class RepliesOnALink : public ::testing::Test {
 protected:
  void push(std::uint32_t piece, std::size_t bytes) {
    for (const Cut cut : byte_cuts(bytes)) {
      schedule_.push(values_of(piece), cut.size, piece == 0 ? "needed" : "bulk");
    }
    send();
  }
  void send() {
    while (auto reply = schedule_.next()) {
      link_.send(
          reply->bytes, 100us,
          [this, bytes = reply->bytes] {
            schedule_.sent(bytes);
            send();
          },
          [this, what = reply->payload] { arrived_[what] = time_.now(); });
    }
  }

  VirtualTime time_;
  VirtualLink link_{time_, 1e9};
  Schedule schedule_;
  std::map<std::string, TimePoint> arrived_;  // by kind: the time at which its last reply arrived
};

// When the value is pushed, only one window of the bulk is ahead of it, not all that remains of the
// 100 MB.
TEST_F(RepliesOnALink, AValueThatIsNeededFirstOvertakesTheBulk) {
  schedule_.set_order(std::vector<std::uint32_t>{0});
  time_.at(TimePoint(0ms), [this] { push(1, 100'000'000); });
  time_.at(TimePoint(10ms), [this] { push(0, 1000); });
  time_.run();
  EXPECT_THAT(arrived_["needed"], Lt(TimePoint(13ms)));
  EXPECT_THAT(arrived_["bulk"], Lt(TimePoint(101ms))) << "and the link was never idle";
}

TEST_F(RepliesOnALink, WithoutAnOrderItWaitsForTheBulk) {
  time_.at(TimePoint(0ms), [this] { push(1, 100'000'000); });
  time_.at(TimePoint(10ms), [this] { push(0, 1000); });
  time_.run();
  EXPECT_GT(arrived_["needed"], TimePoint(100ms));
}

TEST(ReplyBudget, RefusesWhatIsBeyondTheLimitUntilSomeIsReleased) {
  ReplyBudget budget(10'000);
  EXPECT_TRUE(budget.charge(6000));
  EXPECT_FALSE(budget.charge(4000)) << "each has " << ReplyBudget::kBesidePayload << " beside it";
  EXPECT_EQ(budget.waiting_bytes(), ReplyBudget::charge_of(6000));
  budget.release(6000);
  EXPECT_TRUE(budget.charge(4000));
}

TEST(ReplyBudget, AllowsTwiceTheValuesAfterTheHandshake) {
  ReplyBudget budget;
  EXPECT_FALSE(budget.charge(std::size_t{200} << 20));
  budget.allow_values(std::size_t{100} << 20);
  EXPECT_TRUE(budget.charge(std::size_t{200} << 20));
  EXPECT_FALSE(budget.charge(std::size_t{64} << 20));
}

}  // namespace
}  // namespace paceline
