#include "params/protocol/coordinator_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/plain_text.h"

namespace paceline {
namespace {

constexpr Duration kTryEvery = std::chrono::milliseconds(200);
// How long this ps searches for ps 0 before it says so. At the end of a job ps 0 may leave first;
// this ps then leaves, too, and need not say that it has lost ps 0.
constexpr Duration kSayAfter = std::chrono::seconds(2);

}  // namespace

CoordinatorSearch::CoordinatorSearch(Hello hello, TimePoint now)
    : hello_(std::move(hello)), try_at_(now), apart_since_(now) {}

TimePoint CoordinatorSearch::tick(TimePoint now, Outbox& out) {
  if (phase_ == Phase::kWelcomed || phase_ == Phase::kOver) return TimePoint::max();
  const TimePoint say_at = told_ ? TimePoint::max() : apart_since_ + kSayAfter;
  if (now >= say_at) {
    told_ = true;
    out.say(fmt::format("waits for ps:0, which closes the rounds{}{}", why_.empty() ? "" : ": ",
                        plain_text(why_)));
  }
  if (phase_ == Phase::kApart && now >= try_at_) {
    phase_ = Phase::kConnecting;
    out.connect(Outbox::kCoordinator);
  }
  return std::min(told_ ? TimePoint::max() : say_at,
                  phase_ == Phase::kApart ? try_at_ : TimePoint::max());
}

void CoordinatorSearch::connected(Outbox& out) {
  if (phase_ != Phase::kConnecting) return;  // the connection has ended already
  phase_ = Phase::kGreeted;
  out.send(Outbox::kCoordinator, MessageType::kHello, hello_);
}

void CoordinatorSearch::try_again(TimePoint now) {
  phase_ = Phase::kApart;
  try_at_ = now + kTryEvery;
}

void CoordinatorSearch::connect_failed(const std::string& why, TimePoint now) {
  why_ = why;
  try_again(now);
}

// If ps 0 was restarted, this ps stops searching, since the job begins again when the chief says
// so.
void CoordinatorSearch::received(const ControlMessage& message, TimePoint now, Outbox& out) {
  switch (message.type) {
    case MessageType::kWelcome: {
      const Welcome& welcome = message.as<Welcome>();
      phase_ = Phase::kWelcomed;
      why_.clear();
      hello_.ps_incarnation = welcome.incarnation;
      out.add(Outbox::GoOn{Outbox::kCoordinator, welcome.handled});
      const std::chrono::duration<double> away = now - apart_since_;
      if (std::exchange(told_, false)) {
        out.say(fmt::format("ps:0 is there after {:.1f} s", away.count()));
      }
      return;
    }
    case MessageType::kRestarted:
      phase_ = Phase::kOver;
      return;
    case MessageType::kRefuse:
      phase_ = Phase::kOver;
      return out.warn("", Outbox::kNobody, plain_text(message.as<std::string>()));
    default:
      return;  // kBusy: this ps's older connection has not ended yet on ps 0
  }
}

void CoordinatorSearch::closed(std::uint64_t handled, TimePoint now) {
  hello_.handled = handled;
  if (phase_ == Phase::kOver) return;
  if (phase_ == Phase::kWelcomed) apart_since_ = now;
  try_again(now);
}

}  // namespace paceline
