#include "net/shm/shm_sleep.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <thread>

namespace paceline {
namespace {

// The most tries of wake_here. By then, a thread that was about to sleep does sleep.
constexpr int kMostTries = 100;

long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* longest = nullptr) {
  return ::syscall(SYS_futex, &word, operation, value, longest, nullptr, 0);
}

}  // namespace

void ShmSleep::announce(unsigned reasons) {
  sleeping_.store(true);
  wakes_seen_ = pair_.theirs().wakes.load();
  number_ += 4;
  pair_.mine().sleeps.store(number_ | reasons);
}

void ShmSleep::sleep(std::uint32_t wakes_seen) {
  constexpr timespec kLongest{.tv_sec = 0, .tv_nsec = Duration(kLongestSleep).count()};
  if (local_wakes_.load() == wakes_seen)
    futex(pair_.theirs().wakes, FUTEX_WAIT, wakes_seen_, &kLongest);
}

void ShmSleep::awake() {
  pair_.mine().sleeps.store(number_);
  sleeping_.store(false);
}

/// The word on which the thread sleeps belongs to the peer and cannot be changed here. So a thread
/// that has looked once more, but does not sleep yet, cannot be woken. This function tries again
/// until that thread sleeps.
void ShmSleep::wake_here() {
  ++local_wakes_;
  for (int i = 0; i < kMostTries && sleeping_.load(); ++i) {
    if (futex(pair_.theirs().wakes, FUTEX_WAKE, INT_MAX) != 0) return;
    std::this_thread::yield();
  }
}

void ShmSleep::wake_sleeper(std::uint32_t sleeps) {
  woken_.store(sleeps);
  ++pair_.mine().wakes;
  futex(pair_.mine().wakes, FUTEX_WAKE, INT_MAX);
}

}  // namespace paceline
