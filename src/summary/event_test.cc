#include "summary/event.h"

#include <gtest/gtest.h>

#include "paceline/error.h"
#include "summary/proto_writer.h"

namespace paceline {
namespace {

using namespace std::literals;

Histogram some_histogram() {
  return {.min = -1,
          .max = 1,
          .count = 3,
          .sum = 0,
          .sum_squares = 2,
          .limits = {0, 1},
          .counts = {1, 2}};
}

TEST(SummaryEvent, IsReadAsItWasWritten) {
  for (const SummaryEvent& event :
       {SummaryEvent{.wall_time = 1.5e9, .version = "brain.Event:2"},
        SummaryEvent{.step = 7, .start = true}, SummaryEvent{.step = -1, .graph = "graph"},
        SummaryEvent{.step = 1'000'000'000'000,
        .values = {{"loss", 0.5F},
                   {"w", some_histogram()},
                   {"image", SummaryImage{.height = 2, .width = 3, .png = "png"}}}}}) {
    EXPECT_EQ(SummaryEvent::decode(event.encode()), event);
  }
}

TEST(SummaryEvent, WritesANumberAsTheFormatSays) {
  const SummaryEvent event{.wall_time = 1, .step = 2, .values = {{"a", 1.0F}}};
  EXPECT_EQ(event.encode(),
            "\x09\0\0\0\0\0\0\xf0\x3f\x10\x02\x2a\x0a\x0a\x08\x0a\x01"
            "a\x15\0\0\x80\x3f"sv);
}

TEST(SummaryEvent, LeavesOutKindsThatWeDoNotWrite) {
  ProtoWriter sound, summary, message;
  sound.bytes(1, "tone");
  sound.bytes(6, "wave");
  summary.bytes(1, sound.message());
  message.integer(2, 3);
  message.bytes(5, summary.message());
  message.bytes(6, "a log message");
  EXPECT_EQ(SummaryEvent::decode(message.message()), SummaryEvent{.step = 3});
}

TEST(SummaryEvent, RefusesWhatIsNoEvent) {
  EXPECT_THROW(SummaryEvent::decode("\x08\x01"sv), Error);  // a time that is a whole number
  EXPECT_THROW(SummaryEvent::decode("\x2a\x01\x0a"sv), Error);
}

}  // namespace
}  // namespace paceline
