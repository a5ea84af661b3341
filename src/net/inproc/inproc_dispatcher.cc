#include "net/inproc/inproc_dispatcher.h"

#include "net/inproc/inproc_connection.h"

namespace paceline {

InprocDispatcher::InprocDispatcher(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

InprocDispatcher::~InprocDispatcher() { stop(); }

bool InprocDispatcher::add(std::shared_ptr<InprocConnection> connection) {
  std::lock_guard lock(mutex_);
  if (!stopped_) owned_.insert(std::move(connection));
  return !stopped_;
}

void InprocDispatcher::forget(const std::shared_ptr<InprocConnection>& connection) {
  std::lock_guard lock(mutex_);
  owned_.erase(connection);
}

void InprocDispatcher::schedule(std::shared_ptr<InprocConnection> connection) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  ready_.connections.push(std::move(connection));
  ready_.some = true;
  if (spinning_ == 0) changed_.notify_one();
}

void InprocDispatcher::give_up_at(Deadline deadline, std::weak_ptr<InprocConnection> connection) {
  std::lock_guard lock(mutex_);
  deadlines_.emplace(deadline.time(), std::move(connection));
  changed_.notify_one();
}

bool InprocDispatcher::help() {
  if (!ready_.some) return false;
  std::unique_lock lock(mutex_);
  if (ready_.connections.empty() || stopped_) return false;
  const std::shared_ptr<InprocConnection> connection = take_ready();
  lock.unlock();
  connection->take_turn();
  return true;
}

void InprocDispatcher::set_spinning(bool spinning) {
  std::lock_guard lock(mutex_);
  spinning_ += spinning ? 1 : -1;
  changed_.notify_all();
}

std::vector<std::shared_ptr<InprocConnection>> InprocDispatcher::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
  std::lock_guard lock(mutex_);
  while (!ready_.connections.empty()) take_ready();
  std::vector<std::shared_ptr<InprocConnection>> left(owned_.begin(), owned_.end());
  owned_.clear();
  return left;
}

std::shared_ptr<InprocConnection> InprocDispatcher::take_overdue() {
  if (deadlines_.empty() || deadlines_.begin()->first > std::chrono::steady_clock::now()) return {};
  std::shared_ptr<InprocConnection> connection = deadlines_.begin()->second.lock();
  deadlines_.erase(deadlines_.begin());
  return connection;
}

std::shared_ptr<InprocConnection> InprocDispatcher::take_ready() {
  std::shared_ptr<InprocConnection> connection = ready_.connections.pop();
  ready_.some = !ready_.connections.empty();
  return connection;
}

void InprocDispatcher::wait(std::unique_lock<std::mutex>& lock) {
  if (deadlines_.empty()) {
    changed_.wait(lock);
  } else {
    changed_.wait_until(lock, deadlines_.begin()->first);
  }
}

void InprocDispatcher::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (const std::shared_ptr<InprocConnection> overdue = take_overdue()) {
      lock.unlock();
      overdue->give_up();
      lock.lock();
    } else if (spinning_ == 0 && !ready_.connections.empty()) {
      std::shared_ptr<InprocConnection> connection = take_ready();
      lock.unlock();
      connection->take_turn();
      connection.reset();
      lock.lock();
    } else {
      wait(lock);
    }
  }
}

}  // namespace paceline
