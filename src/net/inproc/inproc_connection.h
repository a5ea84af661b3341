// One end of a connection between two threads of a process. A payload is copied once: from the
// sender's memory to where the receiver wants it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "net/link.h"
#include "net/queued_frame.h"
#include "net/traffic_meter.h"

namespace paceline {

class InprocDispatcher;
class InprocConnection;

/// What both ends share.
struct InprocPair {
  struct End {
    std::string peer;  // how this end calls the other one
    std::weak_ptr<InprocConnection> connection;
    Ring<QueuedFrame> inbox;       // for this end, still in the far end's memory
    bool has_turn = false;         // scheduled or being delivered
    bool in_delivery = false;      // a frame of the inbox is being copied
    bool closing = false;          // this end sends no more
    std::optional<Error> verdict;  // what on_closed will say when all is delivered and given back
    TrafficMeter meter;
  };
  /// Of an end. Its receiver looks at each frame: on a cache line that its sender leaves alone.
  struct alignas(64) Lent {
    std::atomic<std::size_t> frames{0};  // out of the inbox, not given back
    std::atomic<bool> over{false};       // there is a verdict
  };
  std::mutex mutex;
  std::array<End, 2> ends;
  std::array<Lent, 2> lent;
};

class InprocConnection : public Connection, public std::enable_shared_from_this<InprocConnection> {
 public:
  /// `receiver` may be null: then `acceptor` is asked for it on the first turn.
  InprocConnection(std::shared_ptr<InprocPair> pair, int side,
                   std::shared_ptr<InprocDispatcher> dispatcher, Receiver* receiver,
                   Acceptor acceptor);

  void send(const FrameHeader& header, std::span<const std::byte> payload,
            void (*sent)(void* context), void* context) override;
  bool can_share() const override { return true; }
  /// Both ends are in one process: the receiver gets the memory itself.
  void share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override;
  void close(Deadline deadline) override;
  bool idle() const override;
  std::string peer() const override { return near().peer; }
  const Traffic& traffic() const override { return near().meter.traffic(); }

  /// Delivers one frame, or the end. Only the dispatcher calls it, once per schedule.
  void take_turn();
  /// Schedules a turn unless there is one already.
  void ask_for_turn();
  /// The deadline of close has passed.
  void give_up();
  /// Ends both sides at once: on_closed here says `error`, there that this end is gone.
  void fail(const Error& error);
  /// For a link that is being destroyed, when its dispatcher runs no more.
  void finish(const Error& error);

 private:
  InprocPair::End& near() const { return pair_->ends[std::size_t(side_)]; }
  InprocPair::End& far() const { return pair_->ends[std::size_t(far_side())]; }
  InprocPair::Lent& lent(int side) const { return pair_->lent[std::size_t(side)]; }
  int far_side() const { return 1 - side_; }
  void queue(QueuedFrame frame);
  static void wake(InprocPair::End& end, std::unique_lock<std::mutex> lock);
  template <typename Call>
  bool guarded(Call call);
  void deliver(const QueuedFrame& frame);
  std::span<std::byte> take_payload(const QueuedFrame& frame);
  void agree_on_end(std::unique_lock<std::mutex>& lock);
  void set_verdicts(const Error& here);
  void note_given_back(int side, std::size_t frames);
  void report_end(const Error& verdict);

  const std::shared_ptr<InprocPair> pair_;
  const int side_;
  const std::shared_ptr<InprocDispatcher> dispatcher_;
  Receiver* receiver_;
  Acceptor acceptor_;
  bool reported_ = false;
};

}  // namespace paceline
