// Counts the changes of a piece's values, and tells watchers of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "params/protocol/value_watches.h"

namespace paceline {

class ShardPiece;

/// A watcher is told, once, that a piece's values have changed. The call may come from any thread,
/// and must not block.
class ValueWatcher {
 public:
  virtual ~ValueWatcher() = default;
  /// `wanted` is true when it waits for the values (watch_after).
  virtual void on_changed(ShardPiece& piece, bool wanted) = 0;
};

/// The watchers of one piece: the real driver of protocol/value_watches.h. Safe from any thread.
class ValueWatchers {
 public:
  /// How often the values have changed. They may be newer than that.
  std::uint64_t version() const { return version_; }
  /// Watches until the first change after the version that it returns. Values that are read from
  /// now on are of that version, or newer. The watcher must outlive the piece, or its changes.
  std::uint64_t watch(ValueWatcher& watcher);
  /// Watches until the first change after that version, whose values the watcher waits for. Returns
  /// false, and does not watch, when there was one.
  bool watch_after(std::uint64_t version, ValueWatcher& watcher);
  /// The values have changed.
  void tell(ShardPiece& piece);

 private:
  std::atomic<std::uint64_t> version_{0};
  std::atomic<bool> watched_{false};
  std::mutex mutex_;
  ValueWatches<ValueWatcher*> watches_;
};

}  // namespace paceline
