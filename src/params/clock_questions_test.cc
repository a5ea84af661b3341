#include "params/clock_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <vector>

#include "paceline/error.h"
#include "params/wire/message.h"

namespace paceline {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Keeps the frames that are sent.
class SentFrames : public Connection {
 public:
  void send(const FrameHeader& header, std::span<const std::byte>, void (*)(void*),
            void*) override {
    frames.push_back(header);
  }
  void close(Deadline) override {}
  bool idle() const override { return true; }
  std::string peer() const override { return "peer"; }
  std::string_view kind() const override { return "test"; }
  const Traffic& traffic() const override { return traffic_; }

  std::vector<FrameHeader> frames;

 private:
  Traffic traffic_;
};

class ClockQuestionsTest : public ::testing::Test {
 protected:
  // Returns the other task's answer to the last question.
  FrameHeader answer() {
    tell_clock(asked_.frames.back(), told_);
    return told_.frames.back();
  }
  std::vector<ClockSample> samples() const {
    const auto all = timeline_.clock_samples();
    const auto of_ps = all.find("ps:0");
    if (of_ps == all.end()) return {};
    const std::span<const ClockSample> samples = of_ps->second.all();
    return {samples.begin(), samples.end()};
  }

  Timeline timeline_{20, 30};
  ClockQuestions questions_{&timeline_, "ps:0"};
  SentFrames asked_, told_;
};

TEST_F(ClockQuestionsTest, AConnectionThatIsMadeBeginsWithSeveral) {
  questions_.begin(asked_);
  for (int i = 0; i < 100; ++i) questions_.answered(answer(), asked_);
  EXPECT_THAT(asked_.frames, SizeIs(16));
  EXPECT_THAT(samples(), SizeIs(16));
  for (const ClockSample& sample : samples()) {
    EXPECT_LE(std::chrono::abs(sample.offset), sample.half);  // both tasks use one clock
  }
}

TEST_F(ClockQuestionsTest, ThereIsOneQuestionAtATime) {
  timeline_.begin_step(10);
  questions_.ask(asked_);
  questions_.ask(asked_);
  EXPECT_THAT(asked_.frames, SizeIs(1));
  questions_.answered(answer(), asked_);
  questions_.ask(asked_);
  EXPECT_THAT(asked_.frames, SizeIs(2));
}

TEST_F(ClockQuestionsTest, NothingIsAskedFarFromTheStepsThatAreRecorded) {
  for (const int step : {0, 3, 31, 100}) {
    timeline_.begin_step(step);
    questions_.ask(asked_);
    EXPECT_THAT(asked_.frames, IsEmpty()) << step;
  }
}

TEST_F(ClockQuestionsTest, NothingIsAskedWithoutATimeline) {
  ClockQuestions none(nullptr, "ps:0");
  none.begin(asked_);
  none.ask(asked_);
  EXPECT_THAT(asked_.frames, IsEmpty());
}

TEST_F(ClockQuestionsTest, AnswersThatNobodyAskedForAreNotCounted) {
  questions_.answered({.type = std::uint16_t(MessageType::kClock)}, asked_);
  questions_.begin(asked_);
  FrameHeader other = answer();
  ++other.step;
  questions_.answered(other, asked_);
  EXPECT_THAT(samples(), IsEmpty());
  questions_.answered(answer(), asked_);
  EXPECT_THAT(samples(), SizeIs(1));
}

TEST_F(ClockQuestionsTest, APayloadIsRefused) {
  const FrameHeader header{.payload_bytes = 1, .type = std::uint16_t(MessageType::kAskClock)};
  EXPECT_THROW(tell_clock(header, told_), Error);
  EXPECT_THROW(questions_.answered(header, asked_), Error);
}

}  // namespace
}  // namespace paceline
