// A plain state machine says what a worker does between two local steps. It holds no values, and
// waits for nothing; its driver does what next() says, and tells.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "params/protocol/outer_schedule.h"

namespace paceline {

class OuterTurns {
 public:
  /// The values that the worker begins from include so many rounds, or contributions of all.
  /// `contributed` is how often this worker has contributed, where nobody waits for others; without
  /// it there are rounds, which all workers count alike. `schedule` is borrowed.
  OuterTurns(const OuterSchedule& schedule, std::int64_t counted,
             std::optional<std::int64_t> contributed = {})
      : schedule_(schedule), contributed_(contributed), counted_(counted) {}

  struct Act {
    enum class Kind : std::uint8_t {
      kSettle,     // wait until the last contribution counts: until its round is closed
      kTakeOver,   // wait for the new values of the fragment, and take them over
      kContribute  // give the fragment's differences
    };
    Kind kind{};
    int fragment = 0;
    bool operator==(const Act&) const = default;
  };

  /// A local step was made. The one that leads to a round is followed by acts.
  void step_made();
  /// The next thing to do before the next local step; nothing when that may begin.
  std::optional<Act> next() const;
  /// The driver has done that. After kSettle it says how many rounds, or contributions of all, then
  /// count: a worker that was too late for a round goes on with the round that is open.
  void settled(std::int64_t rounds);
  void took_over(int fragment);
  void contributed();
  /// True from a contribution until it is known to count.
  bool unsettled() const { return unsettled_; }

  /// The rounds, or contributions, that count, with that of this worker which is under way.
  std::int64_t rounds() const { return counted_ + (unsettled_ ? 1 : 0); }

 private:
  /// The number of this worker's next contribution.
  std::int64_t next_round() const { return contributed_ ? *contributed_ : rounds(); }

  const OuterSchedule& schedule_;
  std::deque<int> under_way_;                // fragments whose values are to come, in their order
  std::optional<std::int64_t> contributed_;  // none: in rounds
  std::int64_t counted_, made_ = 0;
  bool due_ = false;  // a contribution
  bool unsettled_ = false;
};

}  // namespace paceline
