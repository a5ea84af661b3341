// Words in memory that both ends of a channel see, and functions that wait for their change.
#pragma once

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "base/cache_line.h"
#include "paceline/error.h"

namespace paceline::bench {

/// Zero-filled memory that a process shares with the processes that it starts from then on.
class SharedBytes {
 public:
  explicit SharedBytes(std::size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw Error(ErrorCode::kUnavailable, "[bench] no shared memory");
  }
  ~SharedBytes() { ::munmap(data_, bytes_); }
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  const std::size_t bytes_;
  void* const data_;
};

/// A number that one end increases, and for which the other end waits, asleep on a futex. set()
/// calls the system only to wake a sleeper whose number was reached.
class SharedWord {
 public:
  std::uint32_t get() const { return value_.load(std::memory_order_acquire); }
  /// True if the number has reached `wanted`. After its largest value, the number goes on from 0.
  bool has_reached(std::uint32_t wanted) const { return std::int32_t(get() - wanted) >= 0; }
  void set(std::uint32_t value) {
    value_.store(value);
    if (sleeps_.load() && has_reached(wanted_.load())) call(FUTEX_WAKE, 1);
  }
  /// Waits until the number has reached `wanted`. One thread at a time may wait.
  void wait_for(std::uint32_t wanted) {
    wanted_.store(wanted);
    while (!has_reached(wanted)) {
      sleeps_.store(true);
      const std::uint32_t seen = value_.load();
      if (!has_reached(wanted)) call(FUTEX_WAIT, seen);
      sleeps_.store(false);
    }
  }

 private:
  void call(int operation, std::uint32_t value) {
    ::syscall(SYS_futex, &value_, operation, value, nullptr, nullptr, 0);
  }
  alignas(kCacheLine) std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> wanted_{0};
  std::atomic<bool> sleeps_{false};
};

/// An object that both ends see.
template <typename T>
class SharedObject {
 public:
  SharedObject() : bytes_(sizeof(T)), object_(new (bytes_.data()) T) {}
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

 private:
  SharedBytes bytes_;
  T* const object_;
};

}  // namespace paceline::bench
