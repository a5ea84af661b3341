// The threads on which towers make their steps.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace paceline {

/// One thread for each tower, which sleeps between two calls and flushes denormals (denormals.h).
class TowerThreads {
 public:
  /// Each thread first calls `begin` with the number of its tower. If a tower's work throws, that
  /// tower's thread at once calls `failed`, which can end the waits of the other towers. Either
  /// function may be empty. Throws kUnavailable when a thread cannot be started.
  TowerThreads(int towers, const std::function<void(int)>& begin,
               std::function<void(const std::exception_ptr&)> failed);
  ~TowerThreads();
  TowerThreads(const TowerThreads&) = delete;
  TowerThreads& operator=(const TowerThreads&) = delete;

  /// Calls work(tower) for each tower, all at once. If `meanwhile` is not empty, also calls it on
  /// the calling thread. Returns when all calls have returned. Throws the first exception of a
  /// tower, or that of `meanwhile`. Allocates nothing. One caller at a time.
  void run(TileFunction work, const std::function<void()>& meanwhile = {});

 private:
  void serve(int tower);
  void work_guarded(TileFunction work, int tower);
  void wait_for_all();
  void end();

  const std::function<void(const std::exception_ptr&)> failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const TileFunction* work_ = nullptr;  // of the present call
  std::int64_t calls_ = 0;
  int running_ = 0;  // threads that have not returned from the present call
  bool ended_ = false;
  std::exception_ptr error_;  // the first error of the present call
  std::vector<std::thread> threads_;
};

}  // namespace paceline
