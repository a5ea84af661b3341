#include "net/tcp/poller.h"

// tsan knows no fences; all that Asio needs them for is also ordered by its mutexes.
#if defined(__SANITIZE_THREAD__)
#define ASIO_DISABLE_FENCED_BLOCK
#endif

#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace paceline {
namespace {

/// Room for one pending operation: Asio's own cache is per thread, and a step must not allocate.
class OperationRoom {
 public:
  void* take(std::size_t bytes) {
    if (taken_ || bytes > room_.size()) return ::operator new(bytes);
    taken_ = true;
    return room_.data();
  }
  void give_back(void* p) {
    if (p == room_.data()) {
      taken_ = false;
    } else {
      ::operator delete(p);
    }
  }

 private:
  alignas(std::max_align_t) std::array<std::byte, 256> room_;
  bool taken_ = false;
};

template <typename T>
struct RoomAllocator {
  using value_type = T;
  explicit RoomAllocator(OperationRoom* r) : room(r) {}
  template <typename U>
  RoomAllocator(const RoomAllocator<U>& other) : room(other.room) {}
  T* allocate(std::size_t n) { return static_cast<T*>(room->take(n * sizeof(T))); }
  void deallocate(T* p, std::size_t) { room->give_back(p); }
  template <typename U>
  bool operator==(const RoomAllocator<U>& other) const {
    return room == other.room;
  }

  OperationRoom* room;
};

struct WatchRooms {
  OperationRoom read, write;
};

/// Keeps alive what it calls and the room that it lies in.
struct WaitHandler {
  using allocator_type = RoomAllocator<std::byte>;
  allocator_type get_allocator() const { return allocator_type(room); }
  void operator()(const asio::error_code& error) const {
    if (error != asio::error::operation_aborted) (watcher.get()->*call)();
  }

  std::shared_ptr<Watcher> watcher;
  std::shared_ptr<WatchRooms> rooms;
  OperationRoom* room;
  void (Watcher::*call)();
};

}  // namespace

struct Poller::Impl {
  std::atomic<bool> stopped{false};
  asio::io_context io;
  std::vector<std::thread> threads;
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
};

Poller::Poller(int threads) : impl_(std::make_unique<Impl>()) {
  for (int i = 0; i < threads; ++i) impl_->threads.emplace_back([this] { impl_->io.run(); });
}

Poller::~Poller() {
  stop();
  drop_pending();
}

void Poller::call_at(TimePoint time, std::function<void()> call) {
  auto timer = std::make_shared<asio::steady_timer>(impl_->io, time);
  timer->async_wait(
      [timer, call = std::move(call), &stopped = impl_->stopped](const asio::error_code& error) {
        if (!error && !stopped) call();
      });
}

void Poller::stop() {
  impl_->stopped = true;
  impl_->io.stop();
  for (std::thread& thread : impl_->threads)
    if (thread.joinable()) thread.join();
}

void Poller::drop_pending() {
  impl_->work.reset();
  impl_->io.restart();
  impl_->io.poll();
}

struct Watch::Impl {
  Impl(asio::io_context& io, int number) : fd(number), descriptor(io, number) {
    descriptor.non_blocking(true);
  }
  const int fd;
  asio::posix::stream_descriptor descriptor;
  FileDescriptor paused;
  std::shared_ptr<WatchRooms> rooms = std::make_shared<WatchRooms>();
};

Watch::Watch(std::shared_ptr<Poller> poller, FileDescriptor fd)
    : poller_(std::move(poller)), impl_(std::make_unique<Impl>(poller_->impl_->io, fd.release())) {}

Watch::~Watch() = default;

int Watch::fd() const { return impl_->fd; }

void Watch::wait_readable(std::shared_ptr<Watcher> watcher) {
  resume();
  impl_->descriptor.async_wait(
      asio::posix::stream_descriptor::wait_read,
      WaitHandler{std::move(watcher), impl_->rooms, &impl_->rooms->read, &Watcher::on_readable});
}

void Watch::wait_writable(std::shared_ptr<Watcher> watcher) {
  resume();
  impl_->descriptor.async_wait(
      asio::posix::stream_descriptor::wait_write,
      WaitHandler{std::move(watcher), impl_->rooms, &impl_->rooms->write, &Watcher::on_writable});
}

FileDescriptor Watch::release() {
  pause();
  return std::move(impl_->paused);
}

void Watch::pause() {
  if (!impl_->paused) impl_->paused = FileDescriptor(impl_->descriptor.release());
}

void Watch::resume() {
  if (impl_->paused) impl_->descriptor.assign(impl_->paused.release());
}

}  // namespace paceline
