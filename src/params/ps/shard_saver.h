// One ps's part of a checkpoint: it keeps a moment of its shard, and writes it in a thread of its
// own while contributions are applied.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "params/shard/shard.h"
#include "params/wire/save_messages.h"

namespace paceline {

/// Calls may come from any thread; the calls of one save come one after the other.
class ShardSaver {
 public:
  explicit ShardSaver(bool sees_files) : sees_files_(sees_files) {}
  ~ShardSaver();
  ShardSaver(const ShardSaver&) = delete;
  ShardSaver& operator=(const ShardSaver&) = delete;

  /// Returns true when this host sees the file with that content. Shards are then written into its
  /// folder, or folders in that, and nowhere else. Begins to make memory for the moments.
  bool find(const FindFile& file, Shard& shard);
  /// Marks the values. `what` is the answer if all goes well.
  void mark(Shard& shard, const SavedShard& what);
  /// Writes the marked shard as `path`, then calls `done` in that thread. With an empty path the
  /// chief reads the shard with read_marked, and `done` is called at once.
  void write(Shard& shard, const std::string& path, std::function<void(const SavedShard&)> done);

 private:
  std::string why_not(const std::string& path) const;
  SavedShard write_now(Shard& shard, const std::string& path);
  /// Runs `work`, which sets busy_ to false at its end, in a thread.
  void start(std::function<void()> work);

  const bool sees_files_;
  std::mutex mutex_;
  std::string folder_;  // where the file was found
  SavedShard what_;
  bool makes_room_ = false;  // the thread's work, now or last
  bool refused_ = false;     // a mark arrived while a shard was being written
  std::atomic<bool> busy_{false}, cancelled_{false};
  std::thread thread_;
};

}  // namespace paceline
