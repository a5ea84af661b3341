// One end of a connection over two sockets: frames go over one, heartbeats over the other.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "net/connection_end.h"
#include "net/link.h"
#include "net/queued_frame.h"
#include "net/tcp/frame_reader.h"
#include "net/tcp/heartbeat.h"
#include "net/tcp/poller.h"
#include "net/tcp/tcp_connections.h"
#include "net/traffic_meter.h"

namespace paceline {

/// Whoever holds the reading mutex is the only one that calls the receiver: a thread of the poller,
/// or one inside Link::help. Whoever finds the queue at rest sends from it, on the calling thread;
/// what the socket does not take at once is left to the poller or, while somebody spins, to help.
/// Everything that ends a connection
/// notes the cause and shuts the socket down; the reader sees that and makes the last call.
class TcpConnection final : public Connection,
                            public Watcher,
                            public std::enable_shared_from_this<TcpConnection> {
 public:
  TcpConnection(std::shared_ptr<TcpConnections> connections, FileDescriptor data,
                FileDescriptor control, std::string peer);

  void send(const FrameHeader& header, std::span<const std::byte> payload,
            void (*sent)(void* context), void* context) override;
  void close(Deadline deadline) override;
  bool idle() const override;
  std::string peer() const override { return peer_; }
  const Traffic& traffic() const override { return meter_.traffic(); }

  /// From now on `receiver` hears what comes.
  void start(Receiver& receiver);
  /// Nobody wants it: it ends without a receiver.
  void refuse();
  /// Only the system knows, and is asked in `help`.
  bool has_come() const { return true; }
  /// Reads what has come, unless another thread is doing so, and sends what there is room for.
  bool help();
  /// Somebody helps again and again, so the poller's threads need not; or does so no more.
  void set_spinning(bool spinning);
  /// Sends and hears heartbeats: Silence::kTicksOfDeath times per dead_after.
  void tick();
  /// The link is being destroyed, and no poller runs any more.
  void end(const Error& error);

 private:
  void on_readable() override;
  void on_writable() override;

  bool read_turn();
  FrameReader::Outcome guarded_turn();
  void wait_readable();
  void pause();
  void finish();

  void flush(std::unique_lock<std::mutex>& lock, std::size_t most_bytes);
  bool write_turn();
  bool has_room();
  std::ptrdiff_t write(class FrameBatch& batch);
  void take_sent(std::size_t bytes, std::unique_lock<std::mutex>& lock);
  void wait_writable();
  void ask_poller_to_write();
  void shut_writing();
  void fail(const Error& error);

  const std::shared_ptr<TcpConnections> connections_;
  const std::string peer_;
  TrafficMeter meter_;

  // Order of locks: reading, writing, socket; queue_mutex_ alone.
  std::recursive_mutex reading_mutex_;
  bool in_turn_ = false;
  bool read_waits_ = false;
  bool finished_ = false;
  Receiver* receiver_ = nullptr;
  FrameReader reader_;
  std::atomic<bool> heard_{false};  // since the last tick

  ConnectionEnd end_;

  std::mutex writing_mutex_;  // held while writing: the descriptor must not close meanwhile

  mutable std::mutex socket_mutex_;
  std::optional<Watch> data_;  // empty when finished
  bool writable_asked_ = false;
  Heartbeat heartbeat_;

  mutable std::mutex queue_mutex_;
  Ring<QueuedFrame> queue_;
  std::size_t front_done_ = 0;        // bytes of the first frame that were sent
  bool flushing_ = false;             // a thread sends, or somebody shall
  std::atomic<bool> waiting_{false};  // somebody shall go on when there is room
  bool closing_ = false;
  bool ended_ = false;
};

}  // namespace paceline
