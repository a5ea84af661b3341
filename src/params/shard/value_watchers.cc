#include "params/shard/value_watchers.h"

#include <vector>

namespace paceline {

// A thread that changes the values counts the change, and then looks for watchers. Here a watcher
// is noted before the version is read, so that one of both sees the other.
std::uint64_t ValueWatchers::watch(ValueWatcher& watcher) {
  const std::lock_guard lock(mutex_);
  watched_ = true;
  const std::uint64_t version = version_;
  watches_.watch(&watcher, version);
  return version;
}

bool ValueWatchers::watch_after(std::uint64_t version, ValueWatcher& watcher) {
  const std::lock_guard lock(mutex_);
  watched_ = true;
  return watches_.watch_after(&watcher, version, version_);
}

void ValueWatchers::tell(ShardPiece& piece) {
  ++version_;
  if (!watched_) return;
  std::vector<ValueWatches<ValueWatcher*>::Watch> told;
  {
    const std::lock_guard lock(mutex_);
    told = watches_.changed(version_);
    watched_ = !watches_.empty();
  }
  for (const auto& watch : told) watch.watcher->on_changed(piece, watch.wants_values);
}

}  // namespace paceline
