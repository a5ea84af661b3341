// The answers of ps tasks while a checkpoint is written. The link's threads fill it, and the thread
// that saves waits for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "net/frame.h"
#include "params/wire/save_messages.h"
#include "params/wire/task_state.h"

namespace paceline {

class SaveInbox {
 public:
  explicit SaveInbox(int num_ps) : found_(std::size_t(num_ps)), saved_(std::size_t(num_ps)) {}

  /// Begins a new save. Answers to an older one are forgotten, and so are those that still arrive.
  void begin(std::uint64_t save);
  void put_found(int ps, bool found);
  void put_saved(int ps, std::uint64_t save, SavedShard shard);
  void put_state(TaskState state, std::uint64_t save);

  std::vector<std::optional<bool>> found() const;
  std::vector<std::optional<SavedShard>> saved() const;
  std::vector<TaskState> states() const;

  /// Makes the bytes of an array of a piece, from `first` on, arrive in `memory`.
  void expect(std::uint32_t piece, std::uint16_t array, std::size_t first,
              std::span<std::byte> memory);
  /// Returns the memory for a frame's bytes. Throws kDataLoss for bytes that nobody expects.
  std::span<std::byte> place(const FrameHeader& header);
  void arrived(std::size_t bytes);
  std::size_t missing() const;

  /// Makes a waiting thread look again, since something else has changed.
  void wake();
  /// Waits until the predicate holds. Returns false when the deadline passed first. The predicate
  /// may call this object.
  template <typename Predicate>
  bool wait(Deadline deadline, Predicate&& predicate) {
    std::unique_lock lock(mutex_);
    while (true) {
      const std::uint64_t seen = changes_;
      lock.unlock();
      if (predicate()) return true;
      lock.lock();
      const auto changed = [&] { return changes_ != seen; };
      if (!changed_.wait_until(lock, deadline.time(), changed)) return false;
    }
  }

 private:
  template <typename F>
  void change(F&& function);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t changes_ = 0, save_ = 0;
  std::vector<std::optional<bool>> found_;
  std::vector<std::optional<SavedShard>> saved_;
  std::vector<TaskState> states_;
  struct Expected {
    std::uint32_t piece = 0;
    std::uint16_t array = 0;
    std::size_t first = 0;
    std::span<std::byte> memory;
  } expected_;
  std::size_t missing_ = 0;
};

}  // namespace paceline
