// One end of a connection between two threads of a process. A payload is copied once, from the
// sender's memory to where the receiver wants it; a short one travels with its header.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "net/inproc/inproc_queue.h"
#include "net/link.h"
#include "net/wrapped/traffic_meter.h"

namespace paceline {

class InprocDispatcher;

/// The state that both ends share.
struct InprocPair {
  struct End {
    End(std::string peer_name, std::shared_ptr<InprocDispatcher> its_dispatcher)
        : peer(std::move(peer_name)), dispatcher(std::move(its_dispatcher)) {}

    const std::string peer;  // this end's name for the other one
    const std::shared_ptr<InprocDispatcher> dispatcher;
    std::atomic<bool> asked{false};  // it wants a turn, whether anything arrived or not
    bool closing = false;            // it sends no more
    std::optional<Error> reason;     // on_closed gets it when all is delivered and given back
    TrafficMeter meter;
  };
  std::array<End, 2> ends;
  std::array<InprocQueue, 2> inboxes{InprocQueue(ends[1].meter), InprocQueue(ends[0].meter)};
  std::mutex mutex{};  // guards closing and reason; is locked before those of a queue
};

class InprocConnection : public Connection, public std::enable_shared_from_this<InprocConnection> {
 public:
  /// If `receiver` is null, `acceptor` is asked for one on the first turn.
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

  /// True when a turn would do something and no other thread is taking one.
  bool has_come() const { return !in_turn_ && (near().asked || inbox().has_come()); }
  /// Takes a turn: delivers one frame, or the end after the last one. Returns false when another
  /// turn is under way.
  bool help();
  void ask_for_turn() { ask_for_turn(side_); }
  /// The deadline of close has passed.
  void give_up();
  /// Ends it for a link that is being destroyed, whose dispatcher runs no more.
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
