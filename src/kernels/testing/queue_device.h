// For tests: a device with its own memory, whose kernels run later than they are called, on a
// thread of their own. It checks that its users wait.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/denormals.h"
#include "kernels/device.h"
#include "paceline/error.h"

namespace paceline {

/// - The addresses of its memory cannot be read or written: host code that does so dies. Kernels
///   get other addresses, where the memory is.
/// - A kernel that is given host memory is refused.
/// - The target of a download is filled with ones (NaN) until the copy is made.
/// - The source of an upload that changes before the copy is made is an error.
class QueueDevice : public Device, private Event::Source {
 public:
  /// kWhenWaitedFor: nothing runs until someone waits for it, so that every run shows a missing
  /// wait.
  enum class Pace { kAtOnce, kWhenWaitedFor };

  /// Computes with the kernels of `host`, a device in host memory.
  explicit QueueDevice(std::unique_ptr<Device> host, Pace pace = Pace::kWhenWaitedFor)
      : host_(std::move(host)), pace_(pace), thread_([this] { work(); }) {}
  ~QueueDevice() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::string name() const override { return "queue:0"; }
  std::unique_ptr<Kernel> make_kernel(const Node& node) override;
  MemorySpace space() const override { return MemorySpace(this); }
  /// These are not the threads that its kernels use.
  ThreadPool& threads() override { return threads_; }

  Buffer allocate(std::size_t bytes) override {
    Region region{Buffer(std::max<std::size_t>(bytes, 1)), nullptr};
    region.address = mmap(nullptr, region.memory.size(), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region.address == MAP_FAILED) throw std::bad_alloc();
    auto* const address = static_cast<std::byte*>(region.address);
    const std::lock_guard lock(mutex_);
    regions_[address] = std::move(region);
    const auto release = [](void* device, std::byte* memory) {
      static_cast<QueueDevice*>(device)->release(memory);
    };
    return {address, bytes, release, this};
  }

  void upload(void* to, const void* from, std::size_t bytes) override {
    void* const target = reached(to, bytes);
    check_host(from);
    const auto* const source = static_cast<const std::byte*>(from);
    push([target, source, before = std::vector<std::byte>(source, source + bytes)] {
      if (!std::equal(before.begin(), before.end(), source)) {
        throw Error(ErrorCode::kInternal,
                    "[queue device] the source of an upload changed before the copy was made");
      }
      copy_bytes(target, before.data(), before.size());
    });
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    const void* const source = reached(from, bytes);
    check_host(to);
    std::memset(to, 0xff, bytes);
    push([to, source, bytes] { copy_bytes(to, source, bytes); });
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    push([target = reached(to, bytes), source = reached(from, bytes), bytes] {
      copy_bytes(target, source, bytes);
    });
  }

  Event record() override {
    const std::lock_guard lock(mutex_);
    return {*this, pushed_};
  }
  /// The device's own queue runs in order, so it needs no wait.
  void wait(const Event& event) override {
    if (event.source() != this) event.synchronize();
  }
  void synchronize() override { synchronize(pushed()); }

  /// Return how many of the calls have run, and how many calls were made.
  std::uint64_t done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  std::uint64_t pushed() {
    const std::lock_guard lock(mutex_);
    return pushed_;
  }

 private:
  struct Region {
    Buffer memory;  // kernels use this memory
    void* address;  // all others see this address
  };
  class QueuedKernel;

  void push(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      ++pushed_;
    }
    changed_.notify_all();
  }

  void synchronize(std::uint64_t ticket) override {
    std::unique_lock lock(mutex_);
    wanted_ = std::max(wanted_, ticket);
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_ >= ticket; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  /// Waits for the queue, and leaves its errors to other callers.
  void drain() {
    std::unique_lock lock(mutex_);
    wanted_ = pushed_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_ >= wanted_; });
  }

  void release(std::byte* memory) {
    drain();
    const std::lock_guard lock(mutex_);
    const auto region = regions_.find(memory);
    munmap(region->second.address, region->second.memory.size());
    regions_.erase(region);
  }

  // Returns the region of an address, or the end.
  auto region_of(const void* address) const {
    const auto* const byte = static_cast<const std::byte*>(address);
    auto after = regions_.upper_bound(byte);
    if (after == regions_.begin()) return regions_.end();
    --after;
    return byte < after->first + after->second.memory.size() ? after : regions_.end();
  }

  std::byte* reached(const void* address, std::size_t bytes) const {
    if (bytes == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto region = region_of(address);
    if (region == regions_.end()) {
      throw Error(ErrorCode::kInternal, "[queue device] this memory is not the device's");
    }
    const std::ptrdiff_t offset = static_cast<const std::byte*>(address) - region->first;
    if (std::size_t(offset) + bytes > region->second.memory.size()) {
      throw Error(ErrorCode::kInternal, "[queue device] this is beyond the memory's end");
    }
    return region->second.memory.data() + offset;
  }

  void check_host(const void* address) const {
    const std::lock_guard lock(mutex_);
    if (region_of(address) == regions_.end()) return;
    throw Error(ErrorCode::kInternal, "[queue device] this memory is not the host's");
  }

  void work() {
    const FlushDenormals flush;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] {
        const std::uint64_t until = pace_ == Pace::kAtOnce ? pushed_ : wanted_;
        return stop_ || done_ < std::min(pushed_, until);
      });
      if (stop_) return;
      const std::function<void()> next = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        next();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && !error_) error_ = error;
      ++done_;
      changed_.notify_all();
    }
  }

  const std::unique_ptr<Device> host_;
  const Pace pace_;
  ThreadPool threads_{1};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const std::byte*, Region> regions_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t pushed_ = 0, wanted_ = 0, done_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

class QueueDevice::QueuedKernel : public Kernel {
 public:
  QueuedKernel(std::unique_ptr<Kernel> kernel, QueueDevice& device)
      : kernel_(std::move(kernel)), device_(device) {}
  ~QueuedKernel() override { device_.drain(); }
  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  void run(const KernelCall& call) override {
    const std::size_t scratch = call.scratch.size();
    device_.push([this, inputs = reached(call.inputs), outputs = reached(call.outputs), scratch,
                  memory = device_.reached(call.scratch.data(), scratch), step = call.step] {
      kernel_->run({inputs, outputs, {memory, scratch}, step});
    });
  }

 private:
  std::vector<TensorView> reached(std::span<const TensorView> views) const {
    std::vector<TensorView> reached(views.begin(), views.end());
    for (TensorView& view : reached) view.data = device_.reached(view.data, view.bytes());
    return reached;
  }

  const std::unique_ptr<Kernel> kernel_;
  QueueDevice& device_;
};

inline std::unique_ptr<Kernel> QueueDevice::make_kernel(const Node& node) {
  return std::make_unique<QueuedKernel>(host_->make_kernel(node), *this);
}

}  // namespace paceline
