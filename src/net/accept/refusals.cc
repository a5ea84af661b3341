#include "net/accept/refusals.h"

#include <chrono>

namespace paceline {
namespace {

constexpr Duration kBetween = std::chrono::seconds(1);

}  // namespace

void Refusals::add(const std::string& caller, const std::string& why) {
  if (!tell_) return;
  std::string line = caller + " was refused: " + why;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = std::chrono::steady_clock::now();
    if (now < next_) {
      ++untold_;
      return;
    }
    next_ = now + kBetween;
    if (untold_ > 0) line += " (and " + std::to_string(untold_) + " others since the last line)";
    untold_ = 0;
  }
  tell_(line);
}

}  // namespace paceline
