// One end of a connection between two threads of a process. A payload is copied once, from the
// sender's memory to where the receiver wants it; a short payload travels with its header.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/cache_line.h"
#include "net/link.h"
#include "net/queued_frame.h"
#include "net/wrapped/traffic_meter.h"

namespace paceline {

/// The queue of frames on their way to one end of an inproc connection. Frames leave in the order
/// in which they were pushed. Thread-safe.
///
/// Each frame has one cache line of a ring. A short payload lies in this line, too, so a receiver
/// that sees that a short frame has arrived already has all of it. Frames that find no room in the
/// ring wait behind it, and so does shared memory.
class InprocQueue {
 public:
  static constexpr std::size_t kShortBytes = 24;
  using ShortPayload = std::array<std::byte, kShortBytes>;

  /// `sender` counts what is sent, and the time that sending takes.
  explicit InprocQueue(TrafficMeter& sender) : sender_(sender) {}

  /// Borrows the payload until give_back(). If the payload is short and the ring has room, borrows
  /// it only for this call. Returns false if the queue is shut; the frame is then given back.
  bool push(const QueuedFrame& frame);
  bool has_come() const { return ring_has_come() || has_rest_; }
  /// Takes the oldest frame, if there is one and drain() was not called. Its payload may lie in
  /// `room`.
  std::optional<QueuedFrame> take(ShortPayload& room);
  /// Call it once for each taken frame, when nobody needs the frame's payload any more.
  void give_back(const QueuedFrame& frame);
  /// Takes all queued frames, and gives them back. The receiver gets no later frame.
  void drain();

  /// Refuses frames from now on.
  void shut();
  bool is_shut() const { return shut_; }
  /// True if every frame that was ever pushed is given back.
  bool is_idle() const { return done_ == pushed_; }
  /// Waits until is_idle(). The queue must be shut.
  void wait_until_idle() const;

 private:
  /// The payload of a frame that is not short.
  struct Loan {
    const std::byte* payload;
    void (*sent)(void* context);
    void* context;
  };
  struct alignas(kCacheLine) Slot {
    std::atomic<std::uint64_t> number{0};  // the number of the frame in this slot, from 1
    FrameHeader header;
    ShortPayload payload;  // a short payload, or a Loan
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

  // Fields that senders write, fields that receivers write, and fields that both seldom write lie
  // in separate cache lines.
  alignas(kCacheLine) std::mutex sending_;
  std::atomic<std::uint64_t> pushed_{0};  // how many frames were ever pushed
  std::uint64_t seen_taken_ = 0;
  alignas(kCacheLine) std::mutex taking_;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> done_{0};  // the number of frames given back
  bool drained_ = false;                // guarded by taking_
  alignas(kCacheLine) TrafficMeter& sender_;
  std::atomic<bool> shut_{false};
  std::atomic<bool> has_rest_{false};
  Ring<QueuedFrame> rest_;  // guarded by sending_
  std::array<Slot, kSlots> slots_;
};

class InprocDispatcher;

/// The state that both ends share.
struct InprocPair {
  struct End {
    End(std::string peer_name, std::shared_ptr<InprocDispatcher> its_dispatcher)
        : peer(std::move(peer_name)), dispatcher(std::move(its_dispatcher)) {}

    const std::string peer;  // this end's name for the other one
    const std::shared_ptr<InprocDispatcher> dispatcher;
    std::atomic<bool> asked{false};  // a turn was asked for, even if nothing has arrived
    bool closing = false;            // this end sends no more
    std::optional<Error> reason;     // on_closed gets it after all frames are given back
    TrafficMeter meter;
  };
  std::array<End, 2> ends;
  std::array<InprocQueue, 2> inboxes{InprocQueue(ends[1].meter), InprocQueue(ends[0].meter)};
  std::mutex mutex{};  // guards closing and reason; locked before the mutexes of a queue
};

class InprocConnection : public Connection, public std::enable_shared_from_this<InprocConnection> {
 public:
  /// If `receiver` is null, the first turn asks `acceptor` for one.
  InprocConnection(std::shared_ptr<InprocPair> pair, int side, Receiver* receiver,
                   Acceptor acceptor);

  void send(const FrameHeader& header, std::span<const std::byte> payload,
            void (*sent)(void* context), void* context) override;
  bool can_share() const override { return true; }
  /// Both ends are in one process, so the receiver gets the memory itself.
  void share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override;
  void close(Deadline deadline) override;
  bool idle() const override { return outbox().is_idle(); }
  std::string peer() const override { return near().peer; }
  std::string_view kind() const override { return "inproc"; }
  const Traffic& traffic() const override { return near().meter.traffic(); }

  /// True if a turn would do something and no other thread is taking one.
  bool has_come() const { return !in_turn_ && (near().asked || inbox().has_come()); }
  /// Takes a turn: delivers one frame, if there is one, and reports the end once nothing more can
  /// arrive. Returns false if another turn is under way.
  bool help();
  void ask_for_turn() { ask_for_turn(side_); }
  /// Called when the deadline of close has passed.
  void give_up();
  /// Ends the connection for a link that is being destroyed, whose dispatcher no longer runs.
  void finish(const Error& error);

 private:
  int far_side() const { return 1 - side_; }
  InprocPair::End& near() const { return pair_->ends[std::size_t(side_)]; }
  InprocPair::End& far() const { return pair_->ends[std::size_t(far_side())]; }
  InprocQueue& inbox() const { return pair_->inboxes[std::size_t(side_)]; }
  InprocQueue& outbox() const { return pair_->inboxes[std::size_t(far_side())]; }

  void queue(const QueuedFrame& frame);
  void ask_for_turn(int side);
  void accept();
  template <typename Call>
  void guarded(Call call);
  void deliver(const QueuedFrame& frame);
  std::span<std::byte> take_payload(const QueuedFrame& frame);
  bool agree_on_end();
  void set_reasons(int side, const Error& error);
  void fail(const Error& error);
  void report_end();

  const std::shared_ptr<InprocPair> pair_;
  const int side_;
  std::atomic<bool> in_turn_{false};  // stays true once the end is reported
  Receiver* receiver_;
  Acceptor acceptor_;
  bool reported_ = false;
};

}  // namespace paceline
