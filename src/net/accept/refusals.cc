#include "net/accept/refusals.h"

#include <algorithm>
#include <chrono>

namespace paceline {
namespace {

constexpr Duration kEach = std::chrono::seconds(1);
constexpr int kAtOnce = 5;

}  // namespace

void Refusals::add(const std::string& caller, const std::string& why) {
  if (!tell_) return;
  std::string line = caller + " was refused: " + why;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = std::chrono::steady_clock::now();
    if (full_ > now + (kAtOnce - 1) * kEach) {
      ++untold_;
      return;
    }
    full_ = std::max(full_, now) + kEach;
    if (untold_ > 0) line += " (and " + std::to_string(untold_) + " others since the last line)";
    untold_ = 0;
  }
  tell_(line);
}

}  // namespace paceline
