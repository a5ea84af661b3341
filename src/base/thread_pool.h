// The threads that run kernels: an op is cut into tiles, and threads claim them one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

namespace paceline {

/// Calls `function(object, tile)`; a reference to a callable, never owning, never allocating.
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

/// `threads` threads in all, the calling one included: ThreadPool(1) starts none and runs
/// everything in order in the caller. One caller at a time. Threads of its own flush denormals
/// (denormals.h); a caller that computes does too.
class ThreadPool {
 public:
  /// Throws kUnavailable when they cannot all be started.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  /// Calls function(0) … function(tiles − 1), each once, on any thread in any order, and returns
  /// when all have returned. The first exception of a tile is thrown here. Allocates nothing.
  /// Idle threads wait awake for half a millisecond, mostly leaving the core to others that want
  /// it, then sleep.
  void run_tiles(std::int64_t tiles, TileFunction function);

  /// As run_tiles, but each thread begins with a part of its own, the same in every call with as
  /// many tiles: what it read then may still be in its cache. Then it takes what others have not
  /// begun. `backwards`: from the end of each part; by turns, what was read last is read first.
  void run_own_tiles(std::int64_t tiles, bool backwards, TileFunction function);

  /// Splits [0, n) into ranges of at least `grain` and calls function(begin, end) for each.
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
