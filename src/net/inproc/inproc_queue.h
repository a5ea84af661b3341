// The queue of frames on their way to one end of an inproc connection.
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

/// Frames leave in the order in which they were pushed. Thread-safe. A frame has one cache line of
/// a ring, which a short payload shares, so that a receiver that sees that something arrived has
/// all of it. What finds no room there waits behind the ring, and so does memory that is shared.
class InprocQueue {
 public:
  static constexpr std::size_t kShortBytes = 24;
  using ShortPayload = std::array<std::byte, kShortBytes>;

  /// `sender` counts what is sent, and the time that it takes.
  explicit InprocQueue(TrafficMeter& sender) : sender_(sender) {}

  /// Borrows the payload until give_back, a short one perhaps for this call only. Returns false
  /// when the queue is shut; the frame is then given back.
  bool push(const QueuedFrame& frame);
  bool has_come() const { return ring_has_come() || has_rest_; }
  /// Takes the oldest frame, if there is one and drain() was not called. Its payload may lie in
  /// `room`.
  std::optional<QueuedFrame> take(ShortPayload& room);
  /// Is called once for each frame that was taken, when its payload is needed no more.
  void give_back(const QueuedFrame& frame);
  /// Takes all that is there, and gives it back. A receiver gets no frame behind those.
  void drain();

  /// Refuses what is pushed from now on.
  void shut();
  bool is_shut() const { return shut_; }
  /// True when everything that was ever pushed is given back.
  bool is_idle() const { return done_ == pushed_; }
  /// Waits until is_idle(). The queue must be shut.
  void wait_until_idle() const;

 private:
  /// The payload of a frame, if it is not short.
  struct Loan {
    const std::byte* payload;
    void (*sent)(void* context);
    void* context;
  };
  struct alignas(kCacheLine) Slot {
    std::atomic<std::uint64_t> number{0};  // the frame that lies here, counted from 1
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
  std::optional<QueuedFrame> take_oldest(ShortPayload& room);
  QueuedFrame take_rest();
  void end_loan(const QueuedFrame& frame);

  // Fields that senders write, that receivers write, and that both seldom write have separate cache
  // lines.
  alignas(kCacheLine) std::mutex sending_;
  std::atomic<std::uint64_t> pushed_{0};  // all frames so far
  std::uint64_t seen_taken_ = 0;
  alignas(kCacheLine) std::mutex taking_;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> done_{0};  // those that were given back
  bool drained_ = false;                // guarded by taking_
  alignas(kCacheLine) TrafficMeter& sender_;
  std::atomic<bool> shut_{false};
  std::atomic<bool> has_rest_{false};
  Ring<QueuedFrame> rest_;  // guarded by sending_
  std::array<Slot, kSlots> slots_;
};

}  // namespace paceline
