#include "base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace paceline {
namespace {

constexpr int kSpins = 2000;

inline void pause() { __builtin_ia32_pause(); }

}  // namespace

// A job is published by raising `generation`; a thread joins by counting itself into `inside`
// under the mutex while the job is open, so that the caller, who closes the job and waits until
// nobody is inside, never leaves a late thread with a dead function.
struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable work, done;
  std::vector<std::thread> workers;
  bool stopping = false;
  bool open = false;
  std::atomic<int> inside{0};
  int sleeping = 0;
  std::atomic<std::uint64_t> generation{0};
  std::optional<TileFunction> function;
  std::int64_t tiles = 0;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr error;

  void claim_tiles() {
    try {
      for (std::int64_t tile; (tile = next.fetch_add(1, std::memory_order_relaxed)) < tiles;) {
        (*function)(tile);
      }
    } catch (...) {
      next.store(tiles, std::memory_order_relaxed);
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  // Closes the job. The last tiles of the others mostly end soon: sleeping at once would cost more.
  void wait_for_others() {
    {
      const std::lock_guard lock(mutex);
      open = false;
    }
    for (int i = 0; i < kSpins && inside.load(std::memory_order_acquire) > 0; ++i) pause();
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return inside == 0; });
  }

  void worker() {
    std::uint64_t seen = 0;
    while (true) {
      for (int i = 0; i < kSpins && generation.load(std::memory_order_acquire) == seen; ++i)
        pause();
      std::unique_lock lock(mutex);
      ++sleeping;
      work.wait(lock, [&] { return stopping || generation.load() != seen; });
      --sleeping;
      if (stopping) return;
      seen = generation.load();
      if (!open) continue;
      ++inside;
      lock.unlock();
      claim_tiles();
      lock.lock();
      if (--inside == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : threads_(std::max(threads, 1)) {
  if (threads_ == 1) return;
  state_ = std::make_unique<State>();
  for (int i = 1; i < threads_; ++i) state_->workers.emplace_back([this] { state_->worker(); });
}

ThreadPool::~ThreadPool() {
  if (!state_) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->generation.fetch_add(1);
  }
  state_->work.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

void ThreadPool::run_tiles(std::int64_t tiles, TileFunction function) {
  if (threads_ == 1 || tiles <= 1) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) function(tile);
    return;
  }
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    state.function = function;
    state.tiles = tiles;
    state.next.store(0, std::memory_order_relaxed);
    state.error = nullptr;
    state.open = true;
    state.generation.fetch_add(1, std::memory_order_release);
    if (state.sleeping > 0) state.work.notify_all();
  }
  state.claim_tiles();
  state.wait_for_others();
  if (state.error) std::rethrow_exception(state.error);
}

}  // namespace paceline
