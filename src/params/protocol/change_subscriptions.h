// Keeps the workers that want to hear of a piece's next change, or to get its next values. A plain
// state machine. `Listener` is the type by which the driver identifies a worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paceline {

/// The subscriptions to one piece. A version counts the changes of the piece. A listener subscribes
/// to one change at a time, and hears of that change once.
template <typename Listener>
class ChangeSubscriptions {
 public:
  struct Subscription {
    Listener listener;
    /// True: the listener is sent the new values; false: it is only told that they have changed.
    bool wants_values = false;
    std::uint64_t after = 0;  // the version that the listener has
  };

  /// Subscribes to the first change after `version`. The listener is about to get the values of
  /// that version.
  void subscribe(Listener listener, std::uint64_t version) { set({listener, false, version}); }
  /// Subscribes to the values after version `known`, which the listener has. If the present
  /// version, `version`, is already newer, does not subscribe, and returns false.
  bool subscribe_after(Listener listener, std::uint64_t known, std::uint64_t version) {
    set({listener, true, version});
    if (version <= known) return true;
    subscriptions_.pop_back();
    return false;
  }
  /// Call it when the values have changed to `version`. Returns the subscriptions that this change
  /// ends. A listener that subscribed after `version` was counted has seen the change already, and
  /// waits for the next one.
  std::vector<Subscription> changed(std::uint64_t version) {
    const auto waits = [version](const Subscription& subscription) {
      return subscription.after >= version;
    };
    const auto first_told = std::partition(subscriptions_.begin(), subscriptions_.end(), waits);
    std::vector<Subscription> told(first_told, subscriptions_.end());
    subscriptions_.erase(first_told, subscriptions_.end());
    return told;
  }
  bool empty() const { return subscriptions_.empty(); }

 private:
  void set(Subscription subscription) {
    std::erase_if(subscriptions_, [&](const Subscription& other) {
      return other.listener == subscription.listener;
    });
    subscriptions_.push_back(subscription);
  }
  std::vector<Subscription> subscriptions_;
};

}  // namespace paceline
