#include "params/clock_questions.h"

#include "params/wire/message.h"

namespace paceline {
namespace {

void check_empty(const FrameHeader& header) {
  if (header.payload_bytes == 0) return;
  throw Error(ErrorCode::kDataLoss,
              "[wire] " + name_of(MessageType{header.type}) + " has a payload");
}

constexpr int kInARow = 16;
// An answer that takes longer than this was lost with its connection, or is of no use.
constexpr Duration kAnswerWithin = std::chrono::seconds(1);

std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

TimePoint time_of(std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); }

}  // namespace

void ClockQuestions::send(Connection& to) {
  const std::int64_t now = nanoseconds_now();
  asked_ = now;
  to.send({.type = std::uint16_t(MessageType::kAskClock), .step = std::uint64_t(now)}, {});
}

void ClockQuestions::begin(Connection& to) {
  if (timeline_ == nullptr) return;
  more_ = kInARow - 1;
  send(to);
}

void ClockQuestions::ask(Connection& to) {
  if (timeline_ == nullptr || !timeline_->wants_clocks()) return;
  const std::int64_t open = asked_;
  if (open != 0 && nanoseconds_now() - open < Duration(kAnswerWithin).count()) return;
  send(to);
}

void ClockQuestions::answered(const FrameHeader& header, Connection& from) {
  const std::int64_t now = nanoseconds_now();
  check_empty(header);
  std::int64_t asked = std::int64_t(header.step);
  if (asked == 0 || !asked_.compare_exchange_strong(asked, 0)) return;
  timeline_->add_clock_sample(
      task_, clock_sample(time_of(asked), time_of(std::int64_t(header.offset)), time_of(now)));
  if (more_ == 0) return;
  --more_;
  send(from);
}

void tell_clock(const FrameHeader& question, Connection& to) {
  check_empty(question);
  to.send({.type = std::uint16_t(MessageType::kClock),
           .offset = std::uint64_t(nanoseconds_now()),
           .step = question.step},
          {});
}

}  // namespace paceline
