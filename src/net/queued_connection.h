// What the connections of tcp and shm have in common: they send from a queue, and end alike.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "net/connection_end.h"
#include "net/link.h"
#include "net/poll/poller.h"
#include "net/queued_frame.h"
#include "net/wrapped/traffic_meter.h"

namespace paceline {

/// A caller that finds the queue at rest sends from it on its own thread. What finds no room waits
/// until some thread goes on. Everything that ends a connection notes the cause and cuts it; the
/// subclass's reader sees that, drops the queue and makes the receiver's last call.
class QueuedConnection : public Connection, public std::enable_shared_from_this<QueuedConnection> {
 public:
  void send(const FrameHeader& header, std::span<const std::byte> payload,
            void (*sent)(void* context), void* context) override;
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override;
  void close(Deadline deadline) override;
  bool idle() const override;
  std::string peer() const override { return peer_; }
  const Traffic& traffic() const override { return meter_.traffic(); }

 protected:
  /// The result of one write.
  enum class Room { kMore, kNone, kFailed };  // kFailed: fail() was called
  struct Written {
    std::size_t bytes = 0;
    Room room = Room::kMore;
  };

  /// `framing_bytes`: what the subclass writes of each frame beside the payload.
  QueuedConnection(std::string peer, std::shared_ptr<Poller> poller, std::size_t framing_bytes);

  /// Queues the frame, and sends unless another thread does.
  void queue(QueuedFrame frame);
  /// True when something was queued that found no room: some thread is to go on when there is room.
  bool waits_for_room() const { return waiting_; }
  /// Goes on with what waits, unless another thread does.
  bool go_on();
  /// Gives back all that is queued. Nothing is sent any more.
  void drop_queue();
  /// Notes the cause, unless there is an earlier one, and cuts the connection.
  void fail(const Error& error);
  const ConnectionEnd& end_cause() const { return end_; }
  TrafficMeter& meter() { return meter_; }

 private:
  /// Writes a short frame that finds an empty queue, under the queue's lock, and returns the bytes
  /// written, perhaps none. A failure here is found again when the rest is written, if it still
  /// matters.
  virtual std::size_t write_at_once(const QueuedFrame& frame) = 0;
  /// Writes some of the first frames, the very first one without its first `done` bytes. One thread
  /// at a time calls it. It lets go of `lock` while it writes.
  virtual Written write(const Ring<QueuedFrame>& frames, std::size_t done, std::size_t most_bytes,
                        std::unique_lock<std::mutex>& lock) = 0;
  /// Leaves what waits for room to another thread, since this one turns to other things.
  virtual void leave_rest() = 0;
  /// Tells the peer that nothing more will arrive. The peer reads to the end, then closes.
  virtual void shut_writing() = 0;
  /// Makes both sides see that the connection is over.
  virtual void cut() = 0;

  bool write_short(const QueuedFrame& frame);
  void flush(std::unique_lock<std::mutex> lock, std::size_t most_bytes);
  void take_written(std::size_t bytes, std::unique_lock<std::mutex>& lock);
  void end_writing();

  const std::string peer_;
  const std::shared_ptr<Poller> poller_;
  const std::size_t framing_bytes_;
  TrafficMeter meter_;
  ConnectionEnd end_;

  mutable std::mutex queue_mutex_;
  Ring<QueuedFrame> queue_;
  std::size_t front_done_ = 0;        // so many bytes of the first frame were written
  bool flushing_ = false;             // a thread sends, or will when there is room
  std::atomic<bool> waiting_{false};  // a thread is to go on when there is room
  bool closing_ = false;
  bool ended_ = false;
};

}  // namespace paceline
