// What the tasks of a job say about their progress while it runs, for whoever shows it.
#pragma once

#include <atomic>
#include <cstddef>
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
  };
  /// Keeps the newest of each task.
  void heard(const std::string& task, std::string text) {
    const std::lock_guard lock(mutex_);
    for (Heard& each : heard_) {
      if (each.task == task) return void(each.text = std::move(text));
    }
    heard_.push_back({task, std::move(text)});
  }
  /// Takes what was heard since the last call.
  std::vector<Heard> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(heard_, {});
  }

 private:
  mutable std::mutex mutex_;
  std::string own_;
  std::atomic<bool> wanted_{false};
  std::vector<Heard> heard_;
};

}  // namespace paceline
