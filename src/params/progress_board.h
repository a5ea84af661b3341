// Collects what the tasks of a running job say about their progress, for whoever shows it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace paceline {

/// No task says more at once: it travels as a text.
constexpr std::size_t kMostProgressBytes = 65000;

/// One task's: the text that it answers with when another asks, and what others have answered.
/// Any thread may call; nobody waits for anybody.
class ProgressBoard {
 public:
  /// This task has this to say from now on. A text that is too long says nothing.
  void tell(std::string text) {
    const std::lock_guard lock(mutex_);
    own_ = text.size() > kMostProgressBytes ? std::string() : std::move(text);
    wanted_ = false;
  }
  /// Another task asks. Returns what was told last; the task should soon tell something newer.
  std::string asked() {
    wanted_ = true;
    return told();
  }
  /// Returns what this task told last.
  std::string told() const {
    const std::lock_guard lock(mutex_);
    return own_;
  }
  /// True when somebody has asked since the task told something.
  bool wanted() const { return wanted_; }

  /// Another task's answer; "ps:0".
  struct Heard {
    std::string task, text;
    std::int64_t number = 0;  // of the answers that were heard, from 1
  };
  /// Keeps the newest of each task.
  void heard(const std::string& task, std::string text) {
    const std::lock_guard lock(mutex_);
    std::erase_if(heard_, [&](const Heard& each) { return each.task == task; });
    heard_.push_back({task, std::move(text), ++answers_});
  }
  /// Returns the newest answer of each task that was heard after the one with that number, 0 for
  /// all, and sets `after` to the last of them.
  std::vector<Heard> heard_after(std::int64_t& after) const {
    const std::lock_guard lock(mutex_);
    std::vector<Heard> newer;
    for (const Heard& each : heard_) {
      if (each.number > after) newer.push_back(each);
    }
    after = answers_;
    return newer;
  }

 private:
  mutable std::mutex mutex_;
  std::string own_;
  std::atomic<bool> wanted_{false};
  std::vector<Heard> heard_;  // the newest of each task, in the order of their numbers
  std::int64_t answers_ = 0;
};

}  // namespace paceline
