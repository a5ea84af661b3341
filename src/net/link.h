// Links between tasks: listen, connect, send frames, receive frames. One interface, one
// conformance suite (net/conformance.h) for inproc, shm and tcp.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/deadline.h"
#include "net/frame.h"
#include "net/memory/shared_memory.h"
#include "net/poll/event_fd.h"
#include "paceline/error.h"

namespace paceline {

/// Receives what a connection tells its owner. Called on a thread of the link, or on one that is
/// inside Link::help or Link::wait, or destroys the link; never two calls for one connection at a
/// time. An exception ends the connection.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// A header arrived. Returns the place for its payload (exactly payload_bytes long, valid until
  /// on_frame returns). Not called for an empty payload.
  virtual std::span<std::byte> place_payload(const FrameHeader& header) = 0;
  /// The whole frame arrived.
  virtual void on_frame(const FrameHeader& header, std::span<const std::byte> payload) = 0;
  /// The peer shares memory, which it may change at any time: what lies there is copied first, then
  /// checked. The mapping lives as long as somebody holds it. By default refuses (kDataLoss).
  virtual void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory);
  /// The last call, exactly once. The error names the peer and says what happened: kUnavailable
  /// (the peer closed, died or stopped), kDataLoss (garbage, a length that lies), kCancelled (this
  /// side closed, or the link was destroyed), or what the receiver has thrown.
  virtual void on_closed(const Error& error) = 0;
};

/// Counts what has gone over a connection, in bytes of frames, headers included.
struct Traffic {
  std::atomic<std::int64_t> bytes_sent{0}, bytes_received{0};
  /// Nanoseconds in which something was being sent or received (their union). Short frames that
  /// are written or copied at once are left out: looking at the clock would take as long.
  std::atomic<std::int64_t> busy_ns{0};
};

/// One end of a connection. send and close may be called from any thread.
class Connection {
 public:
  virtual ~Connection() = default;
  /// Queues a frame; never blocks. Frames arrive whole and in order. The payload is borrowed until
  /// `sent` (may be null) is called: when it was handed to the system or copied, or when the
  /// connection ended before (the frame then may or may not arrive). `sent` must not block; it may
  /// be called before send returns, so a caller holds no lock that `sent` takes.
  virtual void send(const FrameHeader& header, std::span<const std::byte> payload,
                    void (*sent)(void* context) = nullptr, void* context = nullptr) = 0;
  /// As if a copy of the payload were sent: it is borrowed for this call only. Copied is what
  /// cannot be written at once, or all of it (by default).
  virtual void send_copy(const FrameHeader& header, std::span<const std::byte> payload);
  /// Sends what is queued, then closes (gives up at the deadline). The receiver's on_closed
  /// follows.
  virtual void close(Deadline deadline) = 0;
  /// True when memory can be shared with the peer: both are on one host, and the link supports it.
  virtual bool can_share() const { return false; }
  /// The peer's receiver gets on_shared with `id`, in order with the frames; it reads, and cannot
  /// write. Never blocks. Throws kFailedPrecondition unless can_share().
  virtual void share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory);
  virtual bool idle() const = 0;         // nothing queued or on its way out
  virtual std::string peer() const = 0;  // address, for messages
  virtual const Traffic& traffic() const = 0;
};

class InprocHub;
class ManualTicks;

/// Called for each accepted connection; gives its receiver (owned by the caller, and alive until
/// on_closed has returned). Refuse by throwing.
using Acceptor = std::function<Receiver*(std::shared_ptr<Connection>)>;

struct LinkOptions {
  /// A peer that has sent no heartbeat for this long is dead. None queues behind 75 MB: tcp has a
  /// connection for them, shm a word in memory.
  Duration dead_after = std::chrono::seconds(4);
  /// How long a waiting thread may poll before it sleeps.
  Duration spin = std::chrono::microseconds(20);
  /// Sixteen times in dead_after heartbeats are heard, and sent so often (shm) or every fourth time
  /// (tcp). Not null (tests): whenever it ticks (heartbeat_thread.h).
  std::shared_ptr<ManualTicks> ticks;
  int threads = 1;
  /// For inproc: where its addresses live. Links reach each other through the same hub
  /// (inproc/inproc_hub.h); null: a hub of its own.
  std::shared_ptr<InprocHub> hub;
};

/// A kind of link, with the threads that drive its connections. Destroying it ends all of them
/// (their on_closed is called); not to be done on a thread of its own, nor inside help or wait.
class Link {
 public:
  virtual ~Link() = default;
  virtual std::string kind() const = 0;  // "tcp"
  /// Accepts at `address` ("host:port"; port 0 picks one) until the link is destroyed; returns the
  /// address that peers can use. Throws kUnavailable "port 2222 of 127.0.0.1 is in use",
  /// kNotFound for an unknown host or one that is not this machine.
  virtual std::string listen(const std::string& address, Acceptor acceptor) = 0;
  /// One try. Throws kUnavailable when nobody listens, kNotFound for an unknown host,
  /// kDeadlineExceeded (also when the deadline's descriptor can be read), kInvalidArgument when
  /// this kind of link can never reach it. `receiver` must live until its on_closed has returned.
  virtual std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                              Deadline deadline) = 0;
  /// Lends the calling thread for one short turn: handles what has arrived, if anything, and sends
  /// what found no room before. A waiter polls with it for `spin`, then sleeps in `wait`.
  virtual bool help() = 0;
  /// Sleeps until `come` holds, which is asked again after `wake` was raised; false when the
  /// deadline passed first. One waiter a link at a time, and not inside a receiver. A link that can
  /// reads meanwhile on this thread, so that what arrives wakes no other one first.
  virtual bool wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come);
  /// While true, the caller calls help() again and again, and the link's threads leave what arrives
  /// to it: no thread is woken per message. Calls nest. For waits that never sleep.
  virtual void set_spinning(bool spinning) = 0;
};

/// "inproc", "tcp", "shm", or "auto": shm with tasks of this host, tcp with others (one line each
/// in link.cc). Throws kInvalidArgument naming --link.
std::unique_ptr<Link> make_link(const std::string& kind, const LinkOptions& options);

}  // namespace paceline
