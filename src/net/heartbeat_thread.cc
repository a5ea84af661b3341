#include "net/heartbeat_thread.h"

namespace paceline {

void ManualTicks::tick() {
  const std::lock_guard lock(mutex_);
  for (const auto& [owner, tick] : ticks_) tick();
}

void ManualTicks::add(const void* owner, std::function<void()> tick) {
  const std::lock_guard lock(mutex_);
  ticks_.emplace(owner, std::move(tick));
}

void ManualTicks::remove(const void* owner) {
  const std::lock_guard lock(mutex_);
  ticks_.erase(owner);
}

HeartbeatThread::HeartbeatThread(Duration period, std::function<void()> tick,
                                 std::shared_ptr<ManualTicks> manual)
    : period_(period), tick_(std::move(tick)), manual_(std::move(manual)) {
  if (manual_) {
    manual_->add(this, tick_);
  } else {
    thread_ = std::thread([this] { run(); });
  }
}

HeartbeatThread::~HeartbeatThread() {
  if (manual_) {
    manual_->remove(this);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stops_.notify_all();
  thread_.join();
}

void HeartbeatThread::run() {
  std::unique_lock lock(mutex_);
  while (!stops_.wait_for(lock, period_, [&] { return stopped_; })) {
    lock.unlock();
    tick_();
    lock.lock();
  }
}

}  // namespace paceline
