// The connections of one link, and their turns.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace paceline {

/// Owns connections until forget(), and gives them turns. `has_come` of a connection says whether
/// something may have arrived, and must be cheap to call; `help` takes a turn. Thread-safe.
template <typename C>
class ConnectionList {
 public:
  /// Returns false if the link is being destroyed.
  bool add(std::shared_ptr<C> connection) {
    std::lock_guard lock(mutex_);
    if (!shut_) connections_.push_back(std::move(connection));
    return !shut_;
  }
  void forget(const C* connection) {
    std::lock_guard lock(mutex_);
    std::erase_if(connections_, [&](const auto& one) { return one.get() == connection; });
  }
  bool none() const {
    std::lock_guard lock(mutex_);
    return connections_.empty();
  }
  std::vector<std::shared_ptr<C>> all() const {
    std::lock_guard lock(mutex_);
    return connections_;
  }
  /// From now on no connection can be added. Returns the existing ones.
  std::vector<std::shared_ptr<C>> shut() {
    std::lock_guard lock(mutex_);
    shut_ = true;
    return connections_;
  }

  bool has_come() const {
    std::lock_guard lock(mutex_);
    return std::ranges::any_of(connections_, [](const auto& one) { return one->has_come(); });
  }
  /// Gives one turn to each connection for which something may have arrived.
  bool help() {
    bool helped = false;
    for (std::size_t i = 0; const std::shared_ptr<C> one = next_to_help(i);)
      helped = one->help() || helped;
    return helped;
  }
  /// Calls `call` for each connection, without holding the lock. If a connection is removed
  /// meanwhile, the next one may miss its call.
  void for_each(const auto& call) const {
    for (std::size_t i = 0; const std::shared_ptr<C> one = at(i); ++i) call(one);
  }

 private:
  std::shared_ptr<C> at(std::size_t i) const {
    std::lock_guard lock(mutex_);
    return i < connections_.size() ? connections_[i] : nullptr;
  }
  std::shared_ptr<C> next_to_help(std::size_t& i) const {
    std::lock_guard lock(mutex_);
    while (i < connections_.size() && !connections_[i]->has_come()) ++i;
    return i < connections_.size() ? connections_[i++] : nullptr;
  }

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<C>> connections_;
  bool shut_ = false;
};

}  // namespace paceline
