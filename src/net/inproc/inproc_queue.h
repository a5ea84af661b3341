// Frames on their way to one end of an inproc connection.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/cache_line.h"
#include "net/queued_frame.h"
#include "net/wrapped/traffic_meter.h"

namespace paceline {

/// First in, first out; thread-safe. A frame has one cache line of a ring, which a short payload
/// shares: a receiver that sees that something arrived has all of it. What finds no room there
/// waits behind the ring, and so does memory that is shared.
class InprocQueue {
 public:
  static constexpr std::size_t kShortBytes = 24;
  using ShortPayload = std::array<std::byte, kShortBytes>;

  /// `sender` counts what is sent, and the time while it is.
  explicit InprocQueue(TrafficMeter& sender) : sender_(sender) {}

  /// The payload is borrowed until give_back, a short one perhaps for this call only. False: shut,
  /// and given back.
  bool push(const QueuedFrame& frame);
  bool has_come() const { return ring_has_come() || has_rest_; }
  /// The oldest frame, if there is one; its payload may lie in `room`.
  std::optional<QueuedFrame> take(ShortPayload& room);
  /// Once for each frame that was taken, when its payload is needed no more.
  void give_back(const QueuedFrame& frame);
  /// Takes and gives back what is there.
  void drain();

  /// Refuses what is pushed from now on.
  void shut();
  bool is_shut() const { return shut_; }
  /// True when everything that was ever pushed is given back.
  bool is_idle() const { return done_ == pushed_; }
  /// Only when it is shut.
  void wait_until_idle() const;

 private:
  /// The payload of a frame, if it is not short.
  struct Loan {
    const std::byte* payload;
    void (*sent)(void* context);
    void* context;
  };
  struct alignas(kCacheLine) Slot {
    std::atomic<std::uint64_t> number{0};  // of the frame that lies here, from 1
    FrameHeader header;
    ShortPayload payload;  // or a Loan
  };
  static_assert(sizeof(Slot) == kCacheLine && sizeof(Loan) == kShortBytes);
  static constexpr std::size_t kSlots = 128;

  static bool is_short(const FrameHeader& header) { return header.payload_bytes <= kShortBytes; }
  bool enqueue(const QueuedFrame& frame);
  bool ring_has_room();
  bool ring_has_come() const {
    const std::uint64_t next = taken_.load(std::memory_order_relaxed) + 1;
    return slots_[next % kSlots].number == next;
  }
  void write(const QueuedFrame& frame);
  QueuedFrame read(ShortPayload& room) const;
  QueuedFrame take_rest();
  void end_loan(const QueuedFrame& frame);

  // Each on cache lines of those who write it: senders, receivers, both but seldom.
  alignas(kCacheLine) std::mutex sending_;
  std::atomic<std::uint64_t> pushed_{0};  // frames, ever
  std::uint64_t seen_taken_ = 0;
  alignas(kCacheLine) std::mutex taking_;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> done_{0};  // given back
  alignas(kCacheLine) TrafficMeter& sender_;
  std::atomic<bool> shut_{false};
  std::atomic<bool> has_rest_{false};
  Ring<QueuedFrame> rest_;  // with sending_
  std::array<Slot, kSlots> slots_;
};

}  // namespace paceline
