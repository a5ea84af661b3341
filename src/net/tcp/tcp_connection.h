// One end of a connection over two sockets: frames go over one, heartbeats over the other.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/liveness_timer.h"
#include "net/poll/poller.h"
#include "net/queued_connection.h"
#include "net/stream/byte_stream.h"
#include "net/tcp/frame_reader.h"
#include "net/tcp/frame_writer.h"
#include "net/tcp/incoming_shares.h"
#include "net/tcp/tcp_connections.h"

namespace paceline {

/// The control socket of a connection, over which a byte now and then says that the process runs: a
/// stopped process looks alive to TCP. Not thread-safe.
class Heartbeat {
 public:
  enum class Pulse { kAlive, kSilent, kGarbage };

  explicit Heartbeat(StreamSocket control) : control_(std::move(control)) {}
  /// Sends, listens and judges (LivenessTimer::tick). `heard` tells that data arrived, which is as
  /// good as a beat.
  Pulse tick(bool heard);
  /// True when the other host has lately acknowledged what was sent: it can be reached, whatever
  /// the process does. False when bytes wait for an acknowledgement, and none has come within
  /// `lately`.
  bool is_acknowledged(Duration lately) const;

 private:
  /// Reads what has arrived: nothing, beats or garbage.
  enum class Sound { kNothing, kBeats, kGarbage };
  Sound listen();

  StreamSocket control_;
  LivenessTimer silence_;
};

/// Only a thread that holds the reading mutex calls the receiver: a thread of the poller, or one
/// inside Link::help or Link::wait. What the socket does not take at once is left to the poller.
/// Cutting the connection shuts the socket down, which the reader sees.
class TcpConnection final : public QueuedConnection, public Watcher {
 public:
  enum class Made { kByPeer, kHere };
  TcpConnection(std::shared_ptr<TcpConnections> connections, StreamSocket data,
                StreamSocket control, std::string peer, Made made);

  std::string_view kind() const override { return "tcp"; }
  bool encrypted() const override { return stream_->encrypts(); }
  std::optional<Duration> round_trip() const override;
  /// From now on `receiver` gets the frames that arrive.
  void start(Receiver& receiver);
  /// Ends the connection without a receiver.
  void refuse();
  /// Always true: only the system knows, and `help` asks it.
  bool has_come() const { return true; }
  /// Reads what has arrived, unless another thread is doing so, and sends what there is room for.
  bool help();
  /// From now on the caller calls `help` whenever `fd` can be read, and the poller's threads do not
  /// listen. Returns false when another thread reads, or nothing more will arrive.
  bool lend();
  void take_back();
  /// The data socket; -1 when the connection has ended.
  int fd() const;
  /// True in the middle of a message.
  bool in_message();
  /// Sends and hears heartbeats, and looks at the way: once it has turned out to be short another
  /// congestion control may be better. Is called LivenessTimer::kTicksOfDeath times per dead_after.
  void tick();
  bool made_by_peer() const { return made_ == Made::kByPeer; }
  /// What arrives, as of the last tick. Only the thread that ticks may call it, and the next one.
  IncomingStream& incoming() { return incoming_; }
  /// Bounds what is under way to here, if the way is short; 0: no bound.
  void bound_incoming(std::size_t bytes);
  /// Ends the connection because its link is being destroyed. No poller may run any more.
  void end(const Error& error);

 private:
  void on_readable() override;
  void on_writable() override;

  bool read_turn();
  FrameReader::Outcome guarded_turn();
  void wait_readable();
  void stop_waiting();
  void finish();
  void help_soon();
  void look_at_way();
  std::optional<Duration> measured_round_trip() const;

  std::size_t write_at_once(const QueuedFrame& frame) override;
  Written write(const Ring<QueuedFrame>& frames, std::size_t done, std::size_t most_bytes,
                std::unique_lock<std::mutex>& lock) override;
  std::ptrdiff_t write(FrameBatch& batch, ChecksumSoFar& checksum);
  void leave_rest() override;
  bool has_room();
  void shut_writing() override;
  void cut() override;

  std::shared_ptr<TcpConnection> self() {
    return std::static_pointer_cast<TcpConnection>(shared_from_this());
  }

  const std::shared_ptr<TcpConnections> connections_;
  const Made made_;

  // The mutexes are locked in this order: reading, the queue's, writing, socket.
  std::recursive_mutex reading_mutex_;
  bool in_turn_ = false;
  bool read_waits_ = false;  // the poller's threads listen
  bool lent_ = false;
  bool finished_ = false;
  Receiver* receiver_ = nullptr;
  FrameReader reader_;
  std::atomic<bool> heard_{false};  // since the last tick

  ChecksumSoFar first_checksum_;  // of the first frame in the queue; of the thread that writes
  std::mutex writing_mutex_;      // held while writing: the descriptor must not close meanwhile

  mutable std::mutex socket_mutex_;
  const std::unique_ptr<ByteStream> stream_;  // over data_
  std::optional<Watch> data_;                 // empty when finished
  std::optional<Duration> round_trip_;        // when it finished
  bool way_is_short_ = false;                 // as far as it is known
  IncomingStream incoming_;                   // of the thread that ticks
  bool bounded_ = false;                      // the same
  bool writable_asked_ = false;
  Heartbeat heartbeat_;
};

}  // namespace paceline
