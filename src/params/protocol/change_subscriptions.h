// Keeps which workers a ps tells of a piece's next change, or sends its next values: a plain state
// machine. `Listener` names a worker as the driver does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paceline {

/// The subscriptions to one piece. Versions count its changes. A listener subscribes to one change
/// at a time, and is told of it once.
template <typename Listener>
class ChangeSubscriptions {
 public:
  struct Subscription {
    Listener listener;
    bool wants_values = false;  // it is sent the new values, not only told of the change
    std::uint64_t after = 0;    // the version that it has
  };

  /// Subscribes to the first change after `version`, which the listener is about to be sent.
  void subscribe(Listener listener, std::uint64_t version) { set({listener, false, version}); }
  /// Subscribes to the values after version `known`, which the listener has. Returns false, and
  /// does not subscribe, when `version`, which is there now, is newer.
  bool subscribe_after(Listener listener, std::uint64_t known, std::uint64_t version) {
    set({listener, true, version});
    if (version <= known) return true;
    subscriptions_.pop_back();
    return false;
  }
  /// Says that the values are of `version` now. Returns the subscriptions that this ends. A
  /// listener that subscribed after the change was counted has seen it, and waits for the next one.
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
