#include "params/protocol/coordinator_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/protocol/testing/outbox_text.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

const std::string kConnect = "connect " + std::to_string(Outbox::kCoordinator);
const std::string kHello = std::to_string(Outbox::kCoordinator) + " hello";

class CoordinatorSearchTest : public ::testing::Test {
 protected:
  /// Returns what the search does when `later` has passed.
  std::vector<std::string> tick(Duration later = 0s) {
    now_ += later;
    next_ = search_.tick(now_, out_);
    return take_text(out_);
  }
  std::vector<std::string> receive(const ControlMessage& message) {
    search_.received(message, now_, out_);
    return take_text(out_);
  }
  void greet() {
    tick();
    search_.connected(out_);
    EXPECT_THAT(take_text(out_), ElementsAre(kHello));
  }

  TimePoint now_{}, next_{};
  Outbox out_;
  CoordinatorSearch search_{Hello{}, now_};
};

TEST_F(CoordinatorSearchTest, TriesAgainUntilPs0Answers) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(tick(200ms), ElementsAre(kConnect));
    EXPECT_THAT(tick(100ms), IsEmpty()) << "one try at a time";
    search_.connect_failed("nobody listens", now_);
    EXPECT_THAT(tick(199ms), IsEmpty());
    EXPECT_EQ(next_, now_ + 1ms);
  }
  EXPECT_THAT(tick(1s),
              ElementsAre("say waits for ps:0, which closes the rounds: nobody listens", kConnect));
}

TEST_F(CoordinatorSearchTest, SaysOnceThatPs0IsAwayAndOnceThatItIsThere) {
  EXPECT_THAT(tick(), ElementsAre(kConnect));
  EXPECT_EQ(next_, now_ + 2s);
  EXPECT_THAT(tick(2s), ElementsAre("say waits for ps:0, which closes the rounds"));
  EXPECT_EQ(next_, TimePoint::max());
  EXPECT_THAT(tick(60s), IsEmpty());
  search_.connected(out_);
  EXPECT_THAT(take_text(out_), ElementsAre(kHello));
  EXPECT_THAT(receive({MessageType::kWelcome, Welcome{.handled = 7}}),
              ElementsAre(std::to_string(Outbox::kCoordinator) + " goes on at 7",
                          "say ps:0 is there after 62.0 s"));
  EXPECT_THAT(tick(1h), IsEmpty());
  EXPECT_EQ(next_, TimePoint::max());
}

TEST_F(CoordinatorSearchTest, AConnectionThatEndsIsMadeAgain) {
  greet();
  receive({MessageType::kWelcome, Welcome{}});
  search_.closed(3, now_);
  EXPECT_THAT(tick(199ms), IsEmpty());
  EXPECT_THAT(tick(1ms), ElementsAre(kConnect));
  search_.closed(3, now_);  // before it was made
  search_.connected(out_);
  EXPECT_TRUE(out_.empty());
  EXPECT_THAT(tick(200ms), ElementsAre(kConnect));
}

TEST_F(CoordinatorSearchTest, TriesAgainWhilePs0StillHasTheOlderConnection) {
  greet();
  EXPECT_THAT(receive({MessageType::kBusy, std::string("the older connection")}), IsEmpty());
  search_.closed(0, now_);
  EXPECT_THAT(tick(200ms), ElementsAre(kConnect));
}

TEST_F(CoordinatorSearchTest, EndsWhenPs0WasRestarted) {
  greet();
  EXPECT_THAT(receive({MessageType::kRestarted}), IsEmpty());
  search_.closed(0, now_);
  EXPECT_THAT(tick(1h), IsEmpty());
}

TEST_F(CoordinatorSearchTest, EndsWithAWarningWhenPs0RefusesThisPs) {
  greet();
  EXPECT_THAT(receive({MessageType::kRefuse, std::string("another job")}),
              ElementsAre("warn another job"));
  search_.closed(0, now_);
  EXPECT_THAT(tick(1h), IsEmpty());
}

}  // namespace
}  // namespace paceline
