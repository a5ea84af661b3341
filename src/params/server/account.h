// Where the time of a ps task's threads went.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace paceline {

/// Apply: rules. Queue: a frame had begun to come and was not dealt with yet, apply apart. Idle:
/// the rest, from the first contribution to the last. Added to from any thread.
class ServerAccount {
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
