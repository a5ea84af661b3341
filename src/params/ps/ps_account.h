// Accounts for the time of the threads of a ps task.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace paceline {

/// The time from the first contribution to the last is divided into three shares. Apply is the time
/// in rules, without waiting for another thread that has the variable locked; queue is the time in
/// which a frame had begun to arrive and was not dealt with yet, without apply; idle is the rest.
/// Safe from any thread.
class PsAccount {
 public:
  struct Shares {
    double seconds = 0, apply = 0, queue = 0, idle = 1;
  };

  void add_apply(Duration time) { apply_ns_ += time.count(); }
  void add_handling(Duration time) { handling_ns_ += time.count(); }
  void contribution_at(TimePoint now);
  Shares shares(int threads) const;

 private:
  std::atomic<std::int64_t> apply_ns_{0}, handling_ns_{0}, first_ns_{0}, last_ns_{0};
};

}  // namespace paceline
