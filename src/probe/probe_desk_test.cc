#include "probe/probe_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TimePoint kNow{};
constexpr Duration kSecond = std::chrono::seconds(1);
constexpr std::uint64_t kSession = 77;

ProbeHello hello_of(ProbeRole role, std::uint64_t session = kSession) {
  return {.role = role, .session = session, .seconds = 60, .process = "pid 1 on host a"};
}

/// A desk with an asker (1), the leader of a measurement (2) and its stream (3).
class ProbeDeskTest : public ::testing::Test {
 protected:
  ProbeDeskTest() {
    EXPECT_EQ(come(1, ProbeRole::kAsks), "");
    EXPECT_EQ(come(2, ProbeRole::kLeads), "");
    EXPECT_EQ(come(3, ProbeRole::kStream), "");
  }
  std::string come(ProbeDesk::Caller caller, ProbeRole role, std::uint64_t session = kSession) {
    EXPECT_EQ(desk_.called(caller, kNow), "");
    return desk_.hello(caller, hello_of(role, session), kNow);
  }
  std::string error_of_sent(ProbeDesk::Caller caller, ProbeType type) {
    return error_of(ErrorCode::kDataLoss, [&] { desk_.sent(caller, type); });
  }
  ProbeDesk desk_;
};

TEST_F(ProbeDeskTest, ServesOneAskerAndTellsTheNextWhoAndHowLong) {
  EXPECT_EQ(desk_.served(), "pid 1 on host a");
  EXPECT_EQ(desk_.called(4, kNow), "");
  EXPECT_EQ(
      desk_.hello(4, hello_of(ProbeRole::kAsks, 5), kNow + 20 * kSecond),
      "this host is being measured by pid 1 on host a, for 40 s more at most: ask again then");
  EXPECT_THAT(desk_.left(1), ElementsAre(2, 3)) << "all of its session go with it";
  EXPECT_EQ(desk_.served(), "");
  EXPECT_EQ(come(5, ProbeRole::kAsks, 5), "");
}

TEST_F(ProbeDeskTest, OneHostByTwoNamesIsNotTwoHosts) {
  EXPECT_EQ(come(4, ProbeRole::kAsks),
            "it was called already for this measurement: two of the names are of one host");
}

TEST_F(ProbeDeskTest, TakesMeasurementsOfItsSessionOnly) {
  EXPECT_THAT(come(4, ProbeRole::kLeads, 5), HasSubstr("nobody measures here in that session"));
  desk_.left(1);
  EXPECT_THAT(come(5, ProbeRole::kStream), HasSubstr("nobody measures here in that session"));
  EXPECT_THAT(come(6, ProbeRole::kLeads, 0), HasSubstr("nobody measures here"));
  EXPECT_THAT(come(7, ProbeRole::kAsks, 0), HasSubstr("its session has no number"));
}

TEST_F(ProbeDeskTest, RefusesAnotherVersionInWords) {
  ProbeDesk desk;
  desk.called(1, kNow);
  EXPECT_THAT(desk.hello(1, {.version = 9, .process = {}}, kNow),
              AllOf(HasSubstr("version 9"), HasSubstr("version 1"), HasSubstr("same version")));
}

TEST_F(ProbeDeskTest, EachRoleHasItsMessages) {
  for (const ProbeDesk::Caller caller : {1u, 2u, 3u}) desk_.sent(caller, ProbeType::kPing);
  desk_.sent(1, ProbeType::kMeasure);
  desk_.sent(2, ProbeType::kAskCount);
  desk_.sent(3, ProbeType::kBytes);
  EXPECT_THAT(error_of_sent(1, ProbeType::kBytes), HasSubstr("bytes is no message of this caller"));
  EXPECT_THAT(error_of_sent(2, ProbeType::kFill), HasSubstr("no message of this caller"));
  EXPECT_THAT(error_of_sent(3, ProbeType::kAskRoof), HasSubstr("no message of this caller"));
  EXPECT_THAT(error_of_sent(1, ProbeType::kWelcome), HasSubstr("no message of this caller"));
  EXPECT_THAT(error_of_sent(1, ProbeType{999}), HasSubstr("unknown (999)"));
  desk_.called(4, kNow);
  EXPECT_THAT(error_of_sent(4, ProbeType::kPing), HasSubstr("before hello"));
  EXPECT_THAT(
      error_of(ErrorCode::kDataLoss, [&] { desk_.hello(1, hello_of(ProbeRole::kAsks), kNow); }),
      HasSubstr("hello was said already"));
}

TEST_F(ProbeDeskTest, DoesOneThingAtATimeAndFinishesItForOneThatHasLeft) {
  desk_.begin_work(1);
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { desk_.begin_work(1); }),
              HasSubstr("measures already"));
  desk_.left(1);
  EXPECT_THAT(come(4, ProbeRole::kAsks, 5), HasSubstr("still measures for somebody who has left"));
  desk_.end_work();
  EXPECT_EQ(come(5, ProbeRole::kAsks, 5), "");
}

TEST_F(ProbeDeskTest, WhoSaysNoHelloAndASessionThatTakesTooLongAreLate) {
  desk_.called(4, kNow);
  EXPECT_EQ(desk_.due(), kNow + ProbeDesk::kHelloWithin);
  EXPECT_THAT(desk_.late(kNow + 9 * kSecond), IsEmpty());
  EXPECT_THAT(desk_.late(kNow + 10 * kSecond), ElementsAre(4));
  desk_.left(4);
  EXPECT_EQ(desk_.due(), kNow + 60 * kSecond);
  EXPECT_THAT(desk_.late(kNow + 60 * kSecond), ElementsAre(1));
}

TEST_F(ProbeDeskTest, ManyCallersAreTooMany) {
  ProbeDesk desk;
  for (std::size_t i = 0; i < ProbeDesk::kMostCallers; ++i) EXPECT_EQ(desk.called(i, kNow), "");
  EXPECT_EQ(desk.called(1000, kNow), "too many callers at once");
  desk.left(3);
  EXPECT_EQ(desk.called(1000, kNow), "");
}

TEST(ProbeMessages, AreReadAsTheyWereWritten) {
  const ProbeHello hello = hello_of(ProbeRole::kLeads);
  EXPECT_EQ(decode_probe_hello(encode(hello)), hello);
  const ProbeMeasure measure{"[::1]:2220", 2000};
  EXPECT_EQ(decode_probe_measure(encode(measure)), measure);
  const ProbeRoof roof{{{"cores", 2}, {"gflops", 219.5}}};
  EXPECT_EQ(decode_probe_roof(encode(roof)), roof);
  const ProbeMeasured measured{"", {1e9, 2e9, 3e9, 4e9, 1e-4, 2e-4, -0.5, 1e-5, true}};
  EXPECT_EQ(decode_probe_measured(encode(measured)), measured);
  const ProbeCount count{1'000'000, 77};
  EXPECT_EQ(decode_probe_count(encode(count)), count);
}

TEST(ProbeMessages, FiguresThatCannotBeAndLongFramesAreRefused) {
  ProbeMeasured measured{"", {.all_out = -1}};
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { decode_probe_measured(encode(measured)); }),
              HasSubstr("a figure that cannot be"));
  measured.figures = {.clock_ahead_s = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { decode_probe_measured(encode(measured)); }),
              HasSubstr("a figure that cannot be"));
  EXPECT_THAT(error_of(ErrorCode::kDataLoss,
                       [] {
                         decode_probe_roof(encode(ProbeRoof{{{"cores", -2}}}));
                       }),
              HasSubstr("a figure that cannot be"));
  EXPECT_THAT(
      error_of(ErrorCode::kDataLoss, [] { decode_milliseconds(encode_milliseconds(3'600'000)); }),
      HasSubstr("not filled for so long"));
  const auto length = [](ProbeType type, std::uint32_t bytes) {
    return error_of(
        [&] { check_probe_length({.payload_bytes = bytes, .type = std::uint16_t(type)}); });
  };
  EXPECT_EQ(length(ProbeType::kBytes, kProbeFillBytes), "");
  EXPECT_THAT(length(ProbeType::kBytes, kProbeFillBytes + 1), HasSubstr("too long"));
  EXPECT_THAT(length(ProbeType::kHello, kMostProbeBytes + 1), HasSubstr("too long"));
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [] { decode_probe_hello({}); }), HasSubstr("hello"));
  EXPECT_EQ(decode_probe_text(encode_probe_text("a\n\x1b[1m"), ProbeType::kRefuse), "a??[1m");
}

}  // namespace
}  // namespace paceline
