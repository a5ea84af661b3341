#include <atomic>
#include <cstring>
#include <thread>

#include "base/buffer.h"
#include "bench/channel.h"
#include "bench/spin.h"

namespace paceline::bench {
namespace {

/// Pieces from one thread to another, in order.
class PieceRing {
 public:
  PieceRing(std::size_t piece_bytes, Waiting waiting)
      : piece_bytes_(piece_bytes), waiting_(waiting), memory_(piece_bytes * kSlots) {}

  void push(const Buffer& from) {
    const std::uint32_t at = written_.load(std::memory_order_relaxed);
    wait_until(taken_, [at](std::uint32_t taken) { return at - taken < kSlots; });
    std::memcpy(slot(at), from.data(), piece_bytes_);
    publish(written_, at + 1);
  }
  void pop(const Buffer& to) {
    const std::uint32_t at = taken_.load(std::memory_order_relaxed);
    wait_until(written_, [at](std::uint32_t written) { return written != at; });
    std::memcpy(to.data(), slot(at), piece_bytes_);
    publish(taken_, at + 1);
  }
  /// Returns when everything was taken.
  void drain() {
    const std::uint32_t all = written_.load(std::memory_order_relaxed);
    wait_until(taken_, [all](std::uint32_t taken) { return taken == all; });
  }

 private:
  static constexpr std::uint32_t kSlots = 4;

  std::byte* slot(std::uint32_t at) const { return memory_.data() + at % kSlots * piece_bytes_; }

  template <typename Done>
  void wait_until(const std::atomic<std::uint32_t>& word, const Done& done) const {
    if (waiting_ == Waiting::kSpinning) {
      return spin_until([&] { return done(word.load(std::memory_order_acquire)); });
    }
    for (std::uint32_t seen = word.load(); !done(seen); seen = word.load()) word.wait(seen);
  }
  void publish(std::atomic<std::uint32_t>& word, std::uint32_t value) const {
    word.store(value, std::memory_order_release);
    if (waiting_ == Waiting::kSleeping) word.notify_one();
  }

  const std::size_t piece_bytes_;
  const Waiting waiting_;
  Buffer memory_;
  alignas(64) std::atomic<std::uint32_t> written_{0};
  alignas(64) std::atomic<std::uint32_t> taken_{0};
};

class MemoryChannel : public Channel {
 public:
  explicit MemoryChannel(const ChannelOptions& options)
      : options_(options),
        there_(options.message.piece_bytes, options.waiting),
        back_(options.message.piece_bytes, options.waiting),
        payload_(options.message.piece_bytes),
        answer_(options.message.piece_bytes),
        far_thread_([this] { serve(); }) {}
  ~MemoryChannel() override {
    stop_ = true;
    there_.push(payload_);
  }

  void exchange() override {
    for (std::size_t i = 0; i < options_.message.pieces; ++i) {
      there_.push(payload_);
      if (options_.echo) back_.pop(answer_);
    }
    if (!options_.echo) there_.drain();
  }

 private:
  void serve() {
    const Buffer room(options_.message.piece_bytes);
    while (true) {
      there_.pop(room);
      if (stop_) return;
      if (options_.echo) back_.push(room);
    }
  }

  const ChannelOptions options_;
  PieceRing there_, back_;
  const Buffer payload_, answer_;
  std::atomic<bool> stop_{false};
  std::jthread far_thread_;
};

}  // namespace

std::unique_ptr<Channel> make_memory_channel(const ChannelOptions& options) {
  return std::make_unique<MemoryChannel>(options);
}

}  // namespace paceline::bench
