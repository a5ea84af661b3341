#include "base/buffer.h"
#include "base/copy_bytes.h"
#include "bench/channel.h"
#include "bench/peer_process.h"
#include "bench/shared_word.h"

namespace paceline::bench {
namespace {

/// Carries pieces from one end to the other, in order.
class PieceRing {
 public:
  explicit PieceRing(std::size_t piece_bytes)
      : piece_bytes_(piece_bytes), memory_(piece_bytes * kSlots) {}

  void push(const Buffer& from) {
    wait_for_room();
    copy_bytes(slot(pushed_), from.data(), piece_bytes_);
    words_->written.set(++pushed_);
  }
  void pop(const Buffer& to) {
    words_->written.wait_for(popped_ + 1);
    copy_bytes(to.data(), slot(popped_), piece_bytes_);
    words_->taken.set(++popped_);
  }
  /// Waits until every piece was taken.
  void drain() { words_->taken.wait_for(pushed_); }

 private:
  static constexpr std::uint32_t kSlots = 4;
  struct Words {
    SharedWord written, taken;
  };

  void wait_for_room() { words_->taken.wait_for(pushed_ + 1 - kSlots); }
  std::byte* slot(std::uint32_t at) const { return memory_.data() + at % kSlots * piece_bytes_; }

  const std::size_t piece_bytes_;
  SharedBytes memory_;
  SharedObject<Words> words_;
  std::uint32_t pushed_ = 0, popped_ = 0;  // each is used by one end
};

class MemoryChannel : public Channel {
 public:
  explicit MemoryChannel(const ChannelOptions& options)
      : options_(options),
        there_(options.message.piece_bytes),
        back_(options.message.piece_bytes),
        payload_(options.message.piece_bytes),
        answer_(options.message.piece_bytes),
        far_end_([this] { serve(); }, options.near) {}

  using Channel::exchange;
  void exchange(std::uint32_t times) override {
    for (std::size_t i = 0; i < times * options_.message.pieces; ++i) {
      there_.push(payload_);
      if (options_.echo) back_.pop(answer_);
    }
    if (!options_.echo) there_.drain();
  }
  void pause() override { far_end_.pause(); }
  void resume() override { far_end_.resume(); }

 private:
  [[noreturn]] void serve() {
    while (true) {
      there_.pop(answer_);
      if (options_.echo) back_.push(answer_);
    }
  }

  const ChannelOptions options_;
  PieceRing there_, back_;
  const Buffer payload_, answer_;
  PeerProcess far_end_;
};

}  // namespace

std::unique_ptr<Channel> make_memory_channel(const ChannelOptions& options) {
  return std::make_unique<MemoryChannel>(options);
}

}  // namespace paceline::bench
