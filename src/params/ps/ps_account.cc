#include "params/ps/ps_account.h"

#include <algorithm>

namespace paceline {

void PsAccount::contribution_at(TimePoint now) {
  const std::int64_t time = now.time_since_epoch().count();
  std::int64_t none = 0;
  first_ns_.compare_exchange_strong(none, time);
  last_ns_ = std::max(last_ns_.load(), time);
}

// Frames of several connections overlap on fewer threads, so that queue is what is left at most.
PsAccount::Shares PsAccount::shares(int threads) const {
  const double wall = double(last_ns_ - first_ns_);
  if (wall <= 0) return {};
  const double all = wall * std::max(threads, 1);
  Shares shares;
  shares.seconds = wall * 1e-9;
  shares.apply = std::min(1.0, double(apply_ns_) / all);
  const double queue = double(handling_ns_ - apply_ns_) / all;
  shares.queue = std::clamp(queue, 0.0, 1.0 - shares.apply);
  shares.idle = 1.0 - shares.apply - shares.queue;
  return shares;
}

}  // namespace paceline
