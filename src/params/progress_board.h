// Collects what the tasks of a running job say about their progress, for an observer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace paceline {

/// The most bytes in one answer, which travels as a text.
constexpr std::size_t kMostProgressBytes = 65000;

/// One task's board: the text that it answers when another task asks, and the answers of other
/// tasks. Any thread may call; no call waits.
class ProgressBoard {
 public:
  /// Sets this task's answer. A text that is too long becomes empty.
  void tell(std::string text) {
    const std::lock_guard lock(mutex_);
    own_ = text.size() > kMostProgressBytes ? std::string() : std::move(text);
    wanted_ = false;
  }
  /// Call it when another task asks. Returns this task's last answer; this task should soon set a
  /// newer one.
  std::string asked() {
    wanted_ = true;
    return told();
  }
  /// Returns what this task told last.
  std::string told() const {
    const std::lock_guard lock(mutex_);
    return own_;
  }
  /// True when another task has asked since this task set its answer.
  bool wanted() const { return wanted_; }

  /// Another task's answer; the task is named as in "ps:0".
  struct Heard {
    std::string task, text;
    std::int64_t number = 0;  // the number of this answer; all answers are counted, from 1
  };
  /// Keeps the answer, and forgets an earlier one of the same task.
  void heard(const std::string& task, std::string text) {
    const std::lock_guard lock(mutex_);
    std::erase_if(heard_, [&](const Heard& each) { return each.task == task; });
    heard_.push_back({task, std::move(text), ++answers_});
  }
  /// Returns the newest answers whose numbers are above `after`, one for each task; with 0, those
  /// of all tasks. Sets `after` to the number of the last answer.
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
  std::vector<Heard> heard_;  // the newest answer of each task, in the order of their numbers
  std::int64_t answers_ = 0;
};

}  // namespace paceline
