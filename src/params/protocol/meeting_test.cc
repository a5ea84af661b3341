#include "params/protocol/meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TimePoint kBegin{};
constexpr Duration kSecond = std::chrono::seconds(1);

Attendance rank_of(int rank, int size = 3, std::uint64_t incarnation = 1) {
  return {.rank = rank,
          .size = size,
          .incarnation = incarnation,
          .port = std::uint16_t(1000 + rank),
          .patience_ms = 60'000,
          .meeting = "boss",
          .process = "pid " + std::to_string(rank)};
}

std::string refusal(const Meeting::Answers& answers) {
  return answers.size() == 1 ? answers[0].refusal : "";
}

class MeetingTest : public ::testing::Test {
 protected:
  Meeting::Answers come(int rank, const std::string& host, std::uint64_t incarnation = 1) {
    return meeting_.attended(PeerId(10 * incarnation + std::uint64_t(rank)), host,
                             rank_of(rank, 3, incarnation), kBegin);
  }
  Meeting meeting_{3, 0, kBegin + 100 * kSecond};
};

TEST_F(MeetingTest, TellsAllWhoIsWhereOnceEachHasCome) {
  EXPECT_TRUE(come(2, "10.0.0.3").empty());
  EXPECT_TRUE(come(0, "").empty());
  const Meeting::Answers answers = come(1, "fe80::2");
  ASSERT_EQ(answers.size(), 3u);
  for (const Meeting::Answer& answer : answers) EXPECT_EQ(answer.refusal, "");
  EXPECT_THAT(meeting_.roster().addresses,
              ElementsAre("boss:1000", "[fe80::2]:1001", "10.0.0.3:1002"));
  EXPECT_TRUE(meeting_.tick(kBegin + 1000 * kSecond).empty());
}

TEST_F(MeetingTest, OfOneHostIsOnTheLoopback) {
  for (const int rank : {0, 1, 2}) come(rank, "");
  EXPECT_THAT(meeting_.roster().addresses,
              ElementsAre("127.0.0.1:1000", "127.0.0.1:1001", "127.0.0.1:1002"));
}

TEST_F(MeetingTest, NamesWhoIsLateAndWhoWent) {
  come(0, "");
  come(2, "");
  meeting_.left(12);
  EXPECT_EQ(meeting_.deadline(), kBegin + 60 * kSecond) << "that of the least patience";
  EXPECT_TRUE(meeting_.tick(kBegin + 59 * kSecond).empty());
  const Meeting::Answers answers = meeting_.tick(kBegin + 60 * kSecond);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].to, 10u);
  EXPECT_EQ(answers[0].refusal,
            "of 3 processes rank 1, 2 were not there in time (--join-timeout); rank 2 came (pid 2) "
            "and went");
  EXPECT_THAT(refusal(come(1, "")), HasSubstr("not there in time"));
}

TEST_F(MeetingTest, OneThatDiesEarlyMayComeAgain) {
  come(0, "");
  come(2, "");
  meeting_.left(12);
  come(1, "");
  EXPECT_EQ(come(2, "", 2).size(), 3u);
}

TEST_F(MeetingTest, NamesADoubledRank) {
  come(0, "");
  EXPECT_THAT(refusal(come(0, "", 2)),
              AllOf(HasSubstr("rank 0 has come already (pid 0)"), HasSubstr("two processes")));
  for (const int rank : {1, 2}) come(rank, "");
  EXPECT_THAT(refusal(come(0, "", 3)), HasSubstr("rank 0 has come already"));
}

TEST_F(MeetingTest, OneThatIsStartedAgainGetsItsOldAddress) {
  for (const int rank : {0, 1, 2}) come(rank, rank == 2 ? "10.0.0.3" : "");
  meeting_.left(12);
  const Meeting::Answers again = come(2, "10.0.0.3", 2);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].refusal, "");
  EXPECT_EQ(meeting_.roster().addresses[2], "10.0.0.3:1002");
  meeting_.left(22);
  EXPECT_THAT(refusal(come(2, "10.0.0.4", 3)),
              AllOf(HasSubstr("rank 2 was at 10.0.0.3:1002"), HasSubstr("another host")));
}

TEST_F(MeetingTest, RefusesWhoWasToldAnotherJobOrSaysNonsense) {
  const auto why = [&](auto change) {
    Attendance attendance = rank_of(1);
    change(attendance);
    return refusal(meeting_.attended(7, "", attendance, kBegin));
  };
  EXPECT_THAT(why([](Attendance& a) { a.size = 4; }),
              HasSubstr("the number of processes is 4, and the meeting point 3"));
  EXPECT_THAT(why([](Attendance& a) { a.ps = 1; }), HasSubstr("--ps 1, and the meeting point 0"));
  EXPECT_THAT(why([](Attendance& a) { a.version = 9; }), HasSubstr("protocol version is 9"));
  for (const int rank : {-1, 3}) {
    EXPECT_THAT(why([&](Attendance& a) { a.rank = rank; }), HasSubstr("there is no rank"));
  }
  for (const char* const host : {"", "a,b", "a;worker=b", "a b", "x=y"}) {
    EXPECT_THAT(why([&](Attendance& a) { a.meeting = host; }), HasSubstr("where it will listen"));
  }
  EXPECT_THAT(why([](Attendance& a) { a.port = 0; }), HasSubstr("where it will listen"));
  EXPECT_THAT(why([](Attendance& a) { a.incarnation = 0; }), HasSubstr("where it will listen"));
}

TEST(MeetingOfOne, IsOverAtOnce) {
  Meeting meeting(1, 0, kBegin + kSecond);
  EXPECT_EQ(meeting.attended(1, "", rank_of(0, 1), kBegin).size(), 1u);
  EXPECT_FALSE(meeting.is_open());
}

TEST(MeetingMessages, AreReadAsTheyWereWritten) {
  EXPECT_EQ(decode_attendance(encode(rank_of(2))), rank_of(2));
  const Roster roster{{"a:1", "[::1]:2"}};
  EXPECT_EQ(decode_roster(encode(roster)), roster);
}

}  // namespace
}  // namespace paceline
