// How often a piece's values have changed, and who is told when they do.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace paceline {

class ShardPiece;

/// Is told, once, that a piece's values have changed. From any thread; must not block.
class ValueWatcher {
 public:
  virtual ~ValueWatcher() = default;
  /// `wanted`: it waits for the values, watch_after.
  virtual void on_changed(ShardPiece& piece, bool wanted) = 0;
};

/// Of one piece. From any thread.
class ValueWatchers {
 public:
  /// How often the values have changed, at least: they may be newer.
  std::uint64_t version() const { return version_; }
  /// Until the first change after the version that it returns; values that are read from now on are
  /// that version's, or newer. The watcher must outlive the piece, or its changes.
  std::uint64_t watch(ValueWatcher& watcher);
  /// Until the first change after that version, whose values the watcher waits for. False, and
  /// nobody watches: there was one.
  bool watch_after(std::uint64_t version, ValueWatcher& watcher);
  /// The values have changed.
  void tell(ShardPiece& piece);

 private:
  struct Watch {
    ValueWatcher* watcher;
    bool wants_values;
    std::uint64_t after;  // a version
  };
  /// With the mutex. Returns the version after which it watches.
  std::uint64_t set(ValueWatcher& watcher, bool wants_values);

  std::atomic<std::uint64_t> version_{0};
  std::atomic<bool> watched_{false};
  std::mutex mutex_;
  std::vector<Watch> watches_;
};

}  // namespace paceline
