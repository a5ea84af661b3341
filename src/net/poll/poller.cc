#include "net/poll/poller.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// The number in an epoll event: one of these, or a watch's number, which is above kBeforeWatches.
enum : std::uint64_t { kStopping, kTimer, kBeforeWatches };

FileDescriptor checked(int fd, const char* what) {
  if (fd < 0) throw Error(ErrorCode::kUnavailable, std::string("no descriptor left for ") + what);
  return FileDescriptor(fd);
}

Error error_of_too_many() {
  return {ErrorCode::kUnavailable, "the system can watch no more descriptors"};
}

int set(const FileDescriptor& epoll, int operation, int fd, std::uint64_t number,
        std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = number}};
  return ::epoll_ctl(epoll.get(), operation, fd, &event);
}

}  // namespace

Poller::Poller(int threads)
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "an epoll")),
      timer_(checked(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "a timer")),
      last_watch_(kBeforeWatches) {
  // `stopping_` stops all threads; the timer wakes one thread, which makes the calls that are due.
  if (set(epoll_, EPOLL_CTL_ADD, stopping_.fd(), kStopping, EPOLLIN) != 0 ||
      set(epoll_, EPOLL_CTL_ADD, timer_.get(), kTimer, EPOLLIN | EPOLLET) != 0)
    throw error_of_too_many();
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    stop();
    throw Error(ErrorCode::kUnavailable, "no thread left for a link");
  }
}

Poller::~Poller() {
  stop();
  drop_pending();
}

void Poller::stop() {
  stopped_ = true;
  stopping_.raise();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

/// Destroys what it drops after it has released the lock, since dropped objects may destroy
/// watches, and that takes the lock.
void Poller::drop_pending() {
  std::vector<std::shared_ptr<Watcher>> watchers;
  std::multimap<TimePoint, std::function<void()>> calls;
  const std::lock_guard lock(mutex_);
  for (auto& [number, waits] : watches_) {
    watchers.push_back(std::exchange(waits.reader, nullptr));
    watchers.push_back(std::exchange(waits.writer, nullptr));
  }
  std::swap(calls, calls_);
}

void Poller::run() {
  while (!stopped_) {
    epoll_event event{};
    if (::epoll_wait(epoll_.get(), &event, 1, -1) < 1) continue;
    if (event.data.u64 == kTimer) {
      call_due();
    } else if (event.data.u64 != kStopping) {
      call_waiting(event.data.u64, event.events);
    }
  }
}

std::uint64_t Poller::add(int fd) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t watch = ++last_watch_;
  if (set(epoll_, EPOLL_CTL_ADD, fd, watch, EPOLLONESHOT) != 0) throw error_of_too_many();
  watches_[watch].fd = fd;
  return watch;
}

void Poller::remove(std::uint64_t watch) {
  Waits waits;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  waits = std::exchange(watches_[watch], {});
  watches_.erase(watch);
  set(epoll_, EPOLL_CTL_DEL, waits.fd, 0, 0);
}

void Poller::wait(std::uint64_t watch, std::shared_ptr<Watcher> Waits::*kind,
                  std::shared_ptr<Watcher> watcher) {
  const std::lock_guard lock(mutex_);
  Waits& waits = watches_.at(watch);
  std::swap(waits.*kind, watcher);
  arm(watch, waits);
}

void Poller::cancel_readable(std::uint64_t watch) {
  std::shared_ptr<Watcher> reader;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  Waits& waits = watches_.at(watch);
  std::swap(reader, waits.reader);
  arm(watch, waits);
}

/// Makes the system report the next event of the descriptor, once. The caller holds the lock.
void Poller::arm(std::uint64_t watch, const Waits& waits) const {
  const std::uint32_t events = (waits.reader ? EPOLLIN : 0U) | (waits.writer ? EPOLLOUT : 0U);
  set(epoll_, EPOLL_CTL_MOD, waits.fd, watch, events | EPOLLONESHOT);
}

/// An error, or the end of a connection, ends the waits for reading and for writing. This thread
/// then calls only the reader, and arms the wait of the writer again, so that another thread calls
/// the writer without delay.
void Poller::call_waiting(std::uint64_t watch, std::uint32_t events) {
  std::shared_ptr<Watcher> reader, writer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = watches_.find(watch);
    if (found == watches_.end()) return;
    Waits& waits = found->second;
    if ((events & ~EPOLLOUT) != 0) std::swap(reader, waits.reader);
    if ((events & ~EPOLLIN) != 0 && !reader) std::swap(writer, waits.writer);
    if (waits.reader || waits.writer) arm(watch, waits);
  }
  if (reader) reader->on_readable();
  if (writer) writer->on_writable();
}

void Poller::call_at(TimePoint time, std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  const auto added = calls_.emplace(time, std::move(call));
  if (added == calls_.begin()) set_timer(time);
}

void Poller::call_due() {
  while (const std::function<void()> call = next_due()) {
    if (!stopped_) call();
  }
}

/// Returns the earliest call if it is due, and null otherwise. Sets the timer for the next call, so
/// that another thread can make that call meanwhile.
std::function<void()> Poller::next_due() {
  const std::lock_guard lock(mutex_);
  std::function<void()> due;
  if (!calls_.empty() && calls_.begin()->first <= std::chrono::steady_clock::now())
    due = std::move(calls_.extract(calls_.begin()).mapped());
  if (!calls_.empty()) set_timer(calls_.begin()->first);
  return due;
}

/// The caller holds the lock.
void Poller::set_timer(TimePoint time) const {
  const Duration at = std::max(time.time_since_epoch(), Duration(1));  // 0 would disarm the timer
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at);
  const itimerspec then{.it_interval = {},
                        .it_value = {seconds.count(), Duration(at - seconds).count()}};
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &then, nullptr);
}

Watch::Watch(std::shared_ptr<Poller> poller, FileDescriptor fd)
    : poller_(std::move(poller)), fd_(std::move(fd)), number_(poller_->add(fd_.get())) {
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

Watch::~Watch() {
  if (fd_) poller_->remove(number_);
}

void Watch::wait_readable(std::shared_ptr<Watcher> watcher) {
  poller_->wait(number_, &Poller::Waits::reader, std::move(watcher));
}

void Watch::wait_writable(std::shared_ptr<Watcher> watcher) {
  poller_->wait(number_, &Poller::Waits::writer, std::move(watcher));
}

void Watch::cancel_readable() { poller_->cancel_readable(number_); }

FileDescriptor Watch::release() {
  poller_->remove(number_);
  return std::move(fd_);
}

}  // namespace paceline
