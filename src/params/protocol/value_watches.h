// Keeps which workers a ps tells of a piece's next change, or sends its next values: a plain state
// machine. `Watcher` names a worker as the driver does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paceline {

/// The watches of one piece. Versions count its changes. A watcher watches for one change at a
/// time, and is told of it once.
template <typename Watcher>
class ValueWatches {
 public:
  struct Watch {
    Watcher watcher;
    bool wants_values = false;  // it is sent the new values, not only told of the change
    std::uint64_t after = 0;    // the version that it has
  };

  /// Watches for the first change after `version`, which the watcher is about to be sent.
  void watch(Watcher watcher, std::uint64_t version) { set({watcher, false, version}); }
  /// The watcher has the values of version `known`, and wants the next ones. False, and nobody
  /// watches: `version`, which is there now, is newer.
  bool watch_after(Watcher watcher, std::uint64_t known, std::uint64_t version) {
    set({watcher, true, version});
    if (version <= known) return true;
    watches_.pop_back();
    return false;
  }
  /// The values are of `version` now. Returns the watches that this ends. A watcher that began
  /// after the change was counted has seen it, and waits for the next one.
  std::vector<Watch> changed(std::uint64_t version) {
    const auto waits = [version](const Watch& watch) { return watch.after >= version; };
    const auto first_told = std::partition(watches_.begin(), watches_.end(), waits);
    std::vector<Watch> told(first_told, watches_.end());
    watches_.erase(first_told, watches_.end());
    return told;
  }
  bool empty() const { return watches_.empty(); }

 private:
  void set(Watch watch) {
    std::erase_if(watches_, [&](const Watch& other) { return other.watcher == watch.watcher; });
    watches_.push_back(watch);
  }
  std::vector<Watch> watches_;
};

}  // namespace paceline
