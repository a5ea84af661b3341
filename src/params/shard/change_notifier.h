// Counts the changes of a piece's values, and tells listeners of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "params/protocol/change_subscriptions.h"

namespace paceline {

class ShardPiece;

/// A listener is told, once, that a piece's values have changed. The call may come from any thread,
/// and must not block.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  /// `wanted` is true when it waits for the values (subscribe_after).
  virtual void on_changed(ShardPiece& piece, bool wanted) = 0;
};

/// The listeners of one piece: the real driver of protocol/change_subscriptions.h. Safe from any
/// thread.
class ChangeNotifier {
 public:
  /// Returns how often the values have changed. They may be newer than that.
  std::uint64_t version() const { return version_; }
  /// Subscribes to the first change after the version that it returns. Values that are read from
  /// now on are of that version, or newer. The listener must outlive the piece, or its changes.
  std::uint64_t subscribe(ChangeListener& listener);
  /// Subscribes to the first change after that version, whose values the listener waits for.
  /// Returns false, and does not subscribe, when there was one.
  bool subscribe_after(std::uint64_t version, ChangeListener& listener);
  /// The values have changed.
  void tell(ShardPiece& piece);

 private:
  std::atomic<std::uint64_t> version_{0};
  std::atomic<bool> subscribed_{false};
  std::mutex mutex_;
  ChangeSubscriptions<ChangeListener*> subscriptions_;
};

}  // namespace paceline
