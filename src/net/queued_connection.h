// The common part of connections over tcp and shm: they send from a queue, and end in the same way.
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

/// Sends frames from a queue. A caller that finds the queue at rest sends from the queue on its own
/// thread. Frames that find no room wait until some thread calls go_on().
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

  /// `framing_bytes` is what the subclass writes for each frame in addition to the payload.
  QueuedConnection(std::string peer, std::shared_ptr<Poller> poller, std::size_t framing_bytes);

  /// Queues the frame, and sends it unless another thread is sending.
  void queue(QueuedFrame frame);
  /// True if queued frames wait for room, or because enough was sent at once. Some thread must then
  /// call go_on().
  bool waits_for_room() const { return waiting_; }
  /// Sends what waits, unless another thread is sending.
  bool go_on();
  /// Gives back every queued frame. From then on nothing is sent.
  void drop_queue();
  /// Notes the cause, unless an earlier one exists, and cuts the connection.
  void fail(const Error& error);
  const ConnectionEnd& end_cause() const { return end_; }
  TrafficMeter& meter() { return meter_; }

 private:
  /// Writes a short frame under the queue's lock, when the queue is empty. Returns how many bytes
  /// it has written, perhaps 0. A failure is not reported here: it shows again when the rest is
  /// written.
  virtual std::size_t write_at_once(const QueuedFrame& frame) = 0;
  /// Writes some of the first frames; `done` bytes of the very first one were written before. One
  /// thread at a time calls it. Releases `lock` while it writes.
  virtual Written write(const Ring<QueuedFrame>& frames, std::size_t done, std::size_t most_bytes,
                        std::unique_lock<std::mutex>& lock) = 0;
  /// Called by a thread that stops sending while frames still wait for room: makes another thread
  /// go on.
  virtual void leave_rest() = 0;
  /// Tells the peer that nothing more will arrive. The peer reads to the end, then closes.
  virtual void shut_writing() = 0;
  /// Makes both sides see that the connection has ended.
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
  std::size_t front_done_ = 0;        // bytes of the first frame that were written
  bool flushing_ = false;             // a thread sends, or will when there is room
  std::atomic<bool> waiting_{false};  // a thread must go on when there is room
  bool closing_ = false;
  bool ended_ = false;
};

}  // namespace paceline
