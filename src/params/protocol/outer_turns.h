// Decides what a worker does between two local steps. A plain state machine: it holds no values and
// never waits. The driver does what next() says, and reports.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "params/protocol/outer_schedule.h"

namespace paceline {

class OuterTurns {
 public:
  /// The worker begins with values that include `counted` rounds. If workers do not wait for each
  /// other there are no rounds: `counted` is then the number of contributions of all workers, and
  /// `contributed` that of this worker alone. Borrows `schedule`.
  OuterTurns(const OuterSchedule& schedule, std::int64_t counted,
             std::optional<std::int64_t> contributed = {})
      : schedule_(schedule), contributed_(contributed), counted_(counted) {}

  struct Act {
    enum class Kind : std::uint8_t {
      /// Wait until the last contribution counts: until its round is closed, if there are rounds.
      kSettle,
      kTakeOver,   // wait for the new values of the fragment, and take them over
      kContribute  // contribute the differences of the fragment's values
    };
    Kind kind{};
    int fragment = 0;
    bool operator==(const Act&) const = default;
  };

  /// Call it after each local step. If the step leads to a round, next() returns acts from then on.
  void step_made();
  /// The next act before the next local step; nothing when that step may begin.
  std::optional<Act> next() const;
  /// The driver calls the function of the act that it has done. After kSettle it passes the new
  /// number of rounds, or of contributions of all workers. A worker that was too late for a round
  /// goes on with the open round.
  void settled(std::int64_t rounds);
  void took_over(int fragment);
  void contributed();
  /// True from a contribution until it is known to count.
  bool unsettled() const { return unsettled_; }

  /// The number of rounds, or of contributions, that count. A contribution of this worker that is
  /// not known to count yet is included.
  std::int64_t rounds() const { return counted_ + (unsettled_ ? 1 : 0); }

 private:
  /// The number of this worker's next contribution.
  std::int64_t next_round() const { return contributed_ ? *contributed_ : rounds(); }

  const OuterSchedule& schedule_;
  std::deque<int> under_way_;                // fragments whose values are under way, in order
  std::optional<std::int64_t> contributed_;  // empty: there are rounds
  std::int64_t counted_, made_ = 0;
  bool due_ = false;  // a contribution is due
  bool unsettled_ = false;
};

}  // namespace paceline
