// One end of a connection through shared memory.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "net/liveness_timer.h"
#include "net/queued_connection.h"
#include "net/queued_frame.h"
#include "net/shm/shm_connections.h"
#include "net/shm/shm_frame_reader.h"
#include "net/shm/shm_ring.h"
#include "net/shm/shm_sleep.h"
#include "net/shm/shm_socket.h"

namespace paceline {

/// Writes the frames of a queue into a ring, as far as there is room. One thread at a time uses it,
/// except for may_go_on.
class ShmFrameWriter {
 public:
  ShmFrameWriter(const ShmPair& pair, const ShmReader& reader, ShmSleep& sleep, ShmSocket& socket)
      : ring_(pair, reader), sleep_(sleep), socket_(socket) {}

  /// Writes the whole frame, or returns false and writes nothing if there is no room for it now.
  /// Throws as ShmWriter::room does.
  bool write_whole(const QueuedFrame& frame);
  /// Continues a frame of which `done` bytes were written before. Returns the bytes that it wrote
  /// now; 0 if the writer must wait. The most that it writes is `most_bytes`, or a whole header if
  /// that is longer. Throws kUnavailable if a descriptor cannot be passed, and as ShmWriter::room
  /// does.
  std::size_t write_some(const QueuedFrame& frame, std::size_t done, std::size_t most_bytes);
  /// Returns true if it is time to try again after write_some has returned 0. Any thread may ask.
  bool may_go_on() const { return ring_.is_read(goal_.load(std::memory_order_relaxed)); }

 private:
  bool write_short(const QueuedFrame& frame);
  bool pass(const QueuedFrame& frame);
  std::size_t write_piece(std::span<const std::byte> bytes);
  std::size_t wait_for_room();
  void publish();

  ShmWriter ring_;
  ShmSleep& sleep_;
  ShmSocket& socket_;
  std::atomic<std::uint64_t> goal_{0};  // the peer must have read this far before more is written
  /// For each descriptor that was passed: the peer has taken the descriptor once it has read the
  /// ring up to this position.
  Ring<std::uint64_t> passed_;
};

/// Only a thread that holds the reading mutex calls the receiver: the connection's own thread,
/// which sleeps until something arrives, or a thread inside Link::help. The connection's own thread
/// also sends what found no room in the ring. Cutting the connection wakes that thread; the first
/// thread that sees the cut calls on_closed.
class ShmConnection final : public QueuedConnection, public Watcher {
 public:
  ShmConnection(std::shared_ptr<ShmConnections> connections, FileDescriptor socket,
                std::shared_ptr<SharedMemory> own, std::shared_ptr<const SharedMemory> peers,
                std::string peer);
  ~ShmConnection() override;

  std::string_view kind() const override { return "shm"; }
  bool can_share() const override { return true; }
  void share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override;

  /// From now on `receiver` gets the frames that arrive.
  void start(Receiver& receiver);
  /// Ends the connection without a receiver.
  void refuse();
  /// True if `help` may find something to do.
  bool has_come() const {
    return reader_.has_data() || is_ending() || is_closed_by_peer() || may_write();
  }
  /// Reads what has arrived, unless another thread is reading, and writes what there is room for.
  /// Returns false if it has done neither.
  bool help();
  /// Sends heartbeats and checks for the peer's. The timer calls it LivenessTimer::kTicksOfDeath
  /// times per dead_after.
  void tick();
  /// Ends the connection because its link is being destroyed.
  void end(const Error& error);

 private:
  enum class Outcome { kNothing, kSome, kEnd };
  /// Words that change as long as the peer lives.
  struct Signs {
    std::uint32_t beats = 0;
    std::uint64_t head = 0, tail = 0;
    bool operator==(const Signs&) const = default;
  };

  void on_readable() override;
  void on_writable() override {}
  void take_in();

  void run();
  bool own_turn();
  bool is_ending() const { return failed_ || gone_; }
  bool may_write() const { return waits_for_room() && writer_.may_go_on(); }
  bool spin_in_message() const;
  void sleep(std::uint32_t wakes);
  bool read_turn();
  Outcome guarded_turn();
  bool is_closed_by_peer() const { return pair_.theirs().closed.load() != 0; }
  void finish();

  std::size_t write_at_once(const QueuedFrame& frame) override;
  Written write(const Ring<QueuedFrame>& frames, std::size_t done, std::size_t most_bytes,
                std::unique_lock<std::mutex>& lock) override;
  Written guarded_write(const QueuedFrame& frame, std::size_t done, std::size_t most_bytes);
  bool write_turn() { return may_write() && go_on(); }
  void leave_rest() override;
  void shut_writing() override;
  void cut() override;

  std::shared_ptr<ShmConnection> self() {
    return std::static_pointer_cast<ShmConnection>(shared_from_this());
  }

  const std::shared_ptr<ShmConnections> connections_;
  const ShmPair pair_;
  ShmSleep sleep_;
  ShmSocket socket_;
  std::thread thread_;
  std::atomic<bool> ran_{false};  // the thread is about to end

  // Lock order: the reading mutex, then the writing mutex, then the queue's mutex. All other
  // mutexes are only locked alone.
  std::recursive_mutex reading_mutex_;
  bool in_turn_ = false;
  /// Set while the reading mutex and the writing mutex are held.
  std::atomic<bool> finished_{false};
  Receiver* receiver_ = nullptr;
  ShmFrameReader reader_;

  std::atomic<bool> failed_{false};
  std::atomic<bool> gone_{false};  // the peer has closed its socket

  std::mutex writing_mutex_;  // held while a queued payload is copied

  ShmFrameWriter writer_;

  // Only the heartbeat's thread uses these.
  LivenessTimer silence_;
  Signs signs_;
};

}  // namespace paceline
