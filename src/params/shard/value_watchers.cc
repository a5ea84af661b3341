#include "params/shard/value_watchers.h"

#include <algorithm>

namespace paceline {

// Who changes the values counts, and then looks who watches; here it is the other way round, so
// that one of both sees the other.
std::uint64_t ValueWatchers::set(ValueWatcher& watcher, bool wants_values) {
  watched_ = true;
  std::erase_if(watches_, [&](const Watch& watch) { return watch.watcher == &watcher; });
  watches_.push_back({&watcher, wants_values, version_});
  return watches_.back().after;
}

std::uint64_t ValueWatchers::watch(ValueWatcher& watcher) {
  const std::lock_guard lock(mutex_);
  return set(watcher, false);
}

bool ValueWatchers::watch_after(std::uint64_t version, ValueWatcher& watcher) {
  const std::lock_guard lock(mutex_);
  if (set(watcher, true) <= version) return true;
  watches_.pop_back();
  return false;
}

// Who began to watch after the change was counted has seen it: there it waits for the next one.
void ValueWatchers::tell(ShardPiece& piece) {
  ++version_;
  if (!watched_) return;
  std::vector<Watch> told;
  {
    const std::lock_guard lock(mutex_);
    const auto waits = [now = version_.load()](const Watch& watch) { return watch.after >= now; };
    const auto first_told = std::partition(watches_.begin(), watches_.end(), waits);
    told.assign(first_told, watches_.end());
    watches_.erase(first_told, watches_.end());
    watched_ = !watches_.empty();
  }
  for (const Watch& watch : told) watch.watcher->on_changed(piece, watch.wants_values);
}

}  // namespace paceline
