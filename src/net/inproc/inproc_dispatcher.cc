#include "net/inproc/inproc_dispatcher.h"

#include <system_error>

#include "net/inproc/inproc_connection.h"
#include "paceline/error.h"

namespace paceline {

InprocDispatcher::InprocDispatcher(int threads) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    stop();
    throw Error(ErrorCode::kUnavailable, "no thread left for a link");
  }
}

InprocDispatcher::~InprocDispatcher() { stop(); }

bool InprocDispatcher::add(std::shared_ptr<InprocConnection> connection) {
  return connections_.add(std::move(connection));
}

/// No wake-up is lost: the frame is written before this call, and a thread that is about to sleep
/// first counts itself as a sleeper and then looks for frames once more.
void InprocDispatcher::wake() {
  if (sleepers_ == 0) return;
  std::lock_guard lock(mutex_);
  changed_.notify_one();
}

void InprocDispatcher::give_up_at(Deadline deadline, std::weak_ptr<InprocConnection> connection) {
  std::lock_guard lock(mutex_);
  deadlines_.emplace(deadline.time(), std::move(connection));
  changed_.notify_one();
}

bool InprocDispatcher::help() { return !stopped_ && connections_.help(); }

std::vector<std::shared_ptr<InprocConnection>> InprocDispatcher::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
  return connections_.shut();
}

void InprocDispatcher::run() {
  while (!stopped_)
    if (!give_up_one() && !connections_.help()) sleep();
}

/// Calls give_up for one connection whose deadline has passed. Returns false if there is none.
bool InprocDispatcher::give_up_one() {
  std::unique_lock lock(mutex_);
  if (deadlines_.empty() || deadlines_.begin()->first > std::chrono::steady_clock::now())
    return false;
  const std::shared_ptr<InprocConnection> connection = deadlines_.begin()->second.lock();
  deadlines_.erase(deadlines_.begin());
  lock.unlock();
  if (connection) connection->give_up();
  return true;
}

void InprocDispatcher::sleep() {
  std::unique_lock lock(mutex_);
  ++sleepers_;
  if (!stopped_ && !connections_.has_come()) {
    if (deadlines_.empty()) {
      changed_.wait(lock);
    } else {
      const TimePoint next = deadlines_.begin()->first;  // another thread may remove it meanwhile
      changed_.wait_until(lock, next);
    }
  }
  --sleepers_;
}

}  // namespace paceline
