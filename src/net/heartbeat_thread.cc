#include "net/heartbeat_thread.h"

namespace paceline {

HeartbeatThread::HeartbeatThread(Duration period, std::function<void()> tick)
    : period_(period), tick_(std::move(tick)), thread_([this] { run(); }) {}

HeartbeatThread::~HeartbeatThread() {
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
