#include "base/thread_pool.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cache_line.h"
#include "base/denormals.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// Waits up to half a millisecond for a condition that mostly becomes true soon; returns false if it
// does not. A sleep would cost tens of microseconds, and more on a virtual machine. The thread
// first polls, then yields its core to others that want it.
template <typename Predicate>
bool comes_soon(const Predicate& predicate) {
  using std::chrono::steady_clock;
  constexpr int kPauses = 200;
  constexpr std::chrono::microseconds kMost{500};
  for (int i = 0; i < kPauses; ++i) {
    if (predicate()) return true;
    __builtin_ia32_pause();
  }
  for (const auto end = steady_clock::now() + kMost; steady_clock::now() < end;) {
    if (predicate()) return true;
    std::this_thread::yield();
  }
  return predicate();
}

}  // namespace

// The caller publishes a job by storing its number in `job`, and closes it by storing 0 there. A
// thread joins by counting itself into `inside` and then checking that the job is still open; the
// caller closes the job before it waits until nobody is inside. Whichever comes first is seen by
// the other, so a late thread never calls a function that no longer exists. Threads take the mutex
// only to sleep or to wake others.
struct ThreadPool::State {
  explicit State(std::size_t threads) : parts(threads) {}
  ~State() { stop(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  alignas(kCacheLine) std::atomic<std::uint64_t> job{0};
  alignas(kCacheLine) std::atomic<int> inside{0};
  alignas(kCacheLine) std::optional<TileFunction> function;
  bool backwards = false;
  std::uint64_t jobs = 0;  // published so far

  // The tiles that one thread begins with.
  struct alignas(kCacheLine) Part {
    std::int64_t begin = 0, end = 0;
    std::atomic<std::int64_t> claimed{0};
  };
  std::vector<Part> parts;

  std::mutex mutex;
  std::condition_variable work, done;
  std::atomic<int> sleeping{0};
  std::atomic<bool> caller_sleeps{false}, stopping{false};
  std::exception_ptr error;
  std::vector<std::thread> workers;

  void start() {
    for (std::size_t i = 1; i < parts.size(); ++i) {
      workers.emplace_back([this, i] { worker(i); });
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    work.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void publish() {
    job.store(++jobs);
    if (sleeping.load() == 0) return;
    // Waits until a thread that is about to sleep either has seen the job or sleeps.
    { const std::lock_guard lock(mutex); }
    work.notify_all();
  }

  void share(std::int64_t tiles, int among) {
    for (int i = 0; i < int(parts.size()); ++i) {
      Part& part = parts[std::size_t(i)];
      part.begin = tiles * std::min(i, among) / among;
      part.end = tiles * std::min(i + 1, among) / among;
      part.claimed.store(0, std::memory_order_relaxed);
    }
  }

  void claim_tiles(Part& part) {
    const std::int64_t size = part.end - part.begin;
    if (size == 0) return;
    for (std::int64_t i; (i = part.claimed.fetch_add(1, std::memory_order_relaxed)) < size;) {
      (*function)(backwards ? part.end - 1 - i : part.begin + i);
    }
  }

  // Takes the tiles of the thread's own part first, then those of the other parts.
  void claim_tiles(std::size_t thread) {
    try {
      for (std::size_t i = 0; i < parts.size(); ++i)
        claim_tiles(parts[(thread + i) % parts.size()]);
    } catch (...) {
      for (Part& part : parts) part.claimed.store(part.end, std::memory_order_relaxed);
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  // Closes the job and waits until the other threads have finished their tiles.
  void wait_for_others() {
    job.store(0);
    const auto nobody_inside = [&] { return inside.load() == 0; };
    if (comes_soon(nobody_inside)) return;
    std::unique_lock lock(mutex);
    caller_sleeps = true;
    done.wait(lock, nobody_inside);
    caller_sleeps = false;
  }

  void leave() {
    if (inside.fetch_sub(1) != 1 || !caller_sleeps.load()) return;
    { const std::lock_guard lock(mutex); }
    done.notify_one();
  }

  void worker(std::size_t thread) {
    const FlushDenormals flush;
    std::uint64_t seen = 0;
    const auto is_new = [&] {
      const std::uint64_t now = job.load();
      return (now != 0 && now != seen) || stopping.load();
    };
    while (true) {
      if (!comes_soon(is_new)) {
        std::unique_lock lock(mutex);
        ++sleeping;
        work.wait(lock, is_new);
        --sleeping;
      }
      if (stopping) return;
      ++inside;
      if (const std::uint64_t now = job.load(); now != 0) {
        seen = now;
        claim_tiles(thread);
      }
      leave();
    }
  }
};

ThreadPool::ThreadPool(int threads) : threads_(std::max(threads, 1)) {
  if (threads_ == 1) return;
  state_ = std::make_unique<State>(std::size_t(threads_));
  try {
    state_->start();
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} threads cannot be started: {}", threads_, error.what()));
  }
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run_tiles(std::int64_t tiles, TileFunction function) {
  run(tiles, 1, false, function);
}

void ThreadPool::run_own_tiles(std::int64_t tiles, bool backwards, TileFunction function) {
  run(tiles, threads_, backwards, function);
}

void ThreadPool::run(std::int64_t tiles, int parts, bool backwards, TileFunction function) {
  if (threads_ == 1 || tiles <= 1) {
    for (std::int64_t i = 0; i < tiles; ++i) function(backwards ? tiles - 1 - i : i);
    return;
  }
  State& state = *state_;
  state.function = function;
  state.backwards = backwards;
  state.share(tiles, parts);
  state.error = nullptr;
  state.publish();
  state.claim_tiles(0);
  state.wait_for_others();
  if (state.error) std::rethrow_exception(state.error);
}

}  // namespace paceline
