#include "params/shard/change_notifier.h"

#include <vector>

namespace paceline {

// A thread that changes the values counts the change, and then looks for listeners. Here one
// is noted before the version is read, so that one of both sees the other.
std::uint64_t ChangeNotifier::subscribe(ChangeListener& listener) {
  const std::lock_guard lock(mutex_);
  subscribed_ = true;
  const std::uint64_t version = version_;
  subscriptions_.subscribe(&listener, version);
  return version;
}

bool ChangeNotifier::subscribe_after(std::uint64_t version, ChangeListener& listener) {
  const std::lock_guard lock(mutex_);
  subscribed_ = true;
  return subscriptions_.subscribe_after(&listener, version, version_);
}

void ChangeNotifier::tell(ShardPiece& piece) {
  ++version_;
  if (!subscribed_) return;
  std::vector<ChangeSubscriptions<ChangeListener*>::Subscription> told;
  {
    const std::lock_guard lock(mutex_);
    told = subscriptions_.changed(version_);
    subscribed_ = !subscriptions_.empty();
  }
  for (const auto& subscription : told)
    subscription.listener->on_changed(piece, subscription.wants_values);
}

}  // namespace paceline
