// The threads that run kernels: an op is cut into tiles, and threads claim them one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

namespace paceline {

/// A reference to a callable that takes the number of a tile. It owns and allocates nothing.
class TileFunction {
 public:
  template <typename F>
  TileFunction(F& function)
      : object_(&function),
        call_([](void* object, std::int64_t tile) { (*static_cast<F*>(object))(tile); }) {}
  void operator()(std::int64_t tile) const { call_(object_, tile); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t);
};

/// A pool of `threads` threads, the calling one included: ThreadPool(1) starts none and runs
/// everything in order in the caller. One caller at a time. The pool's threads flush denormals
/// (denormals.h), so a caller that computes should, too.
class ThreadPool {
 public:
  /// Throws kUnavailable if some of the threads cannot be started.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  /// Calls function(0) … function(tiles − 1), each once, on any thread in any order, and returns
  /// when all calls have returned. Throws the first exception of a tile; tiles that had not begun
  /// are then left out. Allocates nothing. Idle threads stay awake for half a millisecond, mostly
  /// yielding their core to others that want it, and then sleep.
  void run_tiles(std::int64_t tiles, TileFunction function);

  /// Does what run_tiles does, but each thread begins with its own part of the tiles. Its part is
  /// the same in every call with as many tiles, so what it read then may still be in its cache.
  /// After its part, a thread takes tiles that others have not begun. If `backwards` is true,
  /// threads go through parts from their end: a caller that alternates reads first what was read
  /// last.
  void run_own_tiles(std::int64_t tiles, bool backwards, TileFunction function);

  /// Splits [0, n) into n / `grain` ranges, rounded up, but into no more than four for each thread.
  /// Calls function(begin, end) for each range.
  template <typename F>
  void parallel_for(std::int64_t n, std::int64_t grain, F&& function) {
    if (n <= 0) return;
    if (threads_ == 1 || n <= grain) {
      function(std::int64_t{0}, n);
      return;
    }
    const std::int64_t most = std::int64_t(threads_) * 4;
    const std::int64_t tiles = std::min(most, (n + grain - 1) / grain);
    auto tile = [&](std::int64_t i) { function(n * i / tiles, n * (i + 1) / tiles); };
    run_tiles(tiles, TileFunction(tile));
  }

 private:
  struct State;
  void run(std::int64_t tiles, int parts, bool backwards, TileFunction function);

  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
