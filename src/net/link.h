// Links between tasks listen, connect, and carry frames. All kinds share one interface and pass one
// conformance suite (net/testing/conformance.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/deadline.h"
#include "net/frame.h"
#include "net/memory/shared_memory.h"
#include "net/poll/event_fd.h"
#include "paceline/error.h"

namespace paceline {

/// Receives the events of a connection. The link makes the calls on a thread of its own, on a
/// thread that is inside Link::help or Link::wait, or on the thread that destroys the link. Each
/// connection makes one call at a time. An exception from a call ends the connection.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// A header has arrived. Returns the place for its payload, which must have exactly payload_bytes
  /// bytes and stay valid until on_frame returns. Not called for an empty payload.
  virtual std::span<std::byte> place_payload(const FrameHeader& header) = 0;
  /// The whole frame arrived.
  virtual void on_frame(const FrameHeader& header, std::span<const std::byte> payload) = 0;
  /// The peer shares memory, and may change the bytes at any time: copy them first, and then check
  /// the copy. The mapping lives as long as somebody holds `memory`. By default, this function
  /// throws kDataLoss, which ends the connection.
  virtual void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory);
  /// The connection has ended. This is the last call, and is made exactly once. The error names the
  /// peer and says what happened: kUnavailable (the peer closed, died or stopped), kDataLoss
  /// (garbage, or a length that lies), kCancelled (this side closed, or the link was destroyed), or
  /// the receiver's own exception.
  virtual void on_closed(const Error& error) = 0;
};

/// Counts what a connection has carried, in bytes of frames, including headers.
struct Traffic {
  std::atomic<std::int64_t> bytes_sent{0}, bytes_received{0};
  /// The nanoseconds in which something was being sent, received, or both. Leaves out short frames
  /// that are written or copied at once: reading the clock would take as long.
  std::atomic<std::int64_t> busy_ns{0};
};

/// One end of a connection, which any thread may use.
class Connection {
 public:
  virtual ~Connection() = default;
  /// Queues a frame; never blocks. Frames arrive whole and in order. Unless `sent` is null, the
  /// payload is borrowed until `sent` is called. The link calls `sent` once the payload was handed
  /// to the system or copied, or once the connection has ended; in the last case the frame may or
  /// may not arrive. `sent` must not block. It may be called before send returns, so a caller holds
  /// no lock that `sent` takes.
  virtual void send(const FrameHeader& header, std::span<const std::byte> payload,
                    void (*sent)(void* context) = nullptr, void* context = nullptr) = 0;
  /// Like send, but borrows the payload only until send_copy returns. A link may copy just the part
  /// that it cannot write at once; the default copies all of it.
  virtual void send_copy(const FrameHeader& header, std::span<const std::byte> payload);
  /// Sends the queued frames until the deadline, then closes. The receiver's on_closed follows.
  virtual void close(Deadline deadline) = 0;
  /// True if memory can be shared with the peer: both are on one host, and the link supports it.
  virtual bool can_share() const { return false; }
  /// Lets the peer read the memory, but not write it. The peer's receiver gets on_shared with `id`,
  /// in order with the frames. Never blocks. Throws kFailedPrecondition unless can_share().
  virtual void share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory);
  /// True if nothing is queued or being sent.
  virtual bool idle() const = 0;
  /// The peer's address, for messages.
  virtual std::string peer() const = 0;
  /// The kind of link that carries the connection: "inproc", "shm" or "tcp".
  virtual std::string_view kind() const = 0;
  /// True if the connection encrypts what it sends.
  virtual bool encrypted() const { return false; }
  /// Returns the time from here to the peer and back, as the system measures and smooths it. Once
  /// the connection has ended, returns the last value. Returns nullopt if the system measures none.
  virtual std::optional<Duration> round_trip() const { return {}; }
  virtual const Traffic& traffic() const = 0;
};

class ManualTicks;
struct LinkSecurity;

/// Called for each accepted connection. Returns its receiver, which the callee owns and which lives
/// until on_closed has returned. Throws to refuse the connection.
using Acceptor = std::function<Receiver*(std::shared_ptr<Connection>)>;

struct LinkOptions {
  /// A peer that has sent no heartbeat for this long is dead. Heartbeats never queue behind values:
  /// tcp has a socket of their own for them, and shm a word in memory.
  Duration dead_after = std::chrono::seconds(4);
  /// How long a waiting thread may poll before it sleeps.
  Duration spin = std::chrono::microseconds(20);
  /// Gives tests control of the time of heartbeats: see heartbeat_thread.h. If it is null, the link
  /// checks for heartbeats sixteen times in dead_after. Shm sends a heartbeat at each check, and
  /// tcp at every fourth one.
  std::shared_ptr<ManualTicks> ticks;
  /// The number of threads that handle what arrives.
  int threads = 1;
  /// Says which connections are encrypted, and holds the proof that both ends give. Null: no
  /// connection is encrypted, and the link accepts everyone who reaches a port.
  std::shared_ptr<const LinkSecurity> security;
  /// Called on a thread of the link when callers were refused, with a line for the user that says
  /// which address was refused and why. After the first few calls there is at most one call a
  /// second, whose line counts the refusals in between.
  std::function<void(const std::string&)> refused;
};

/// A link of one kind, with the threads that drive its connections. Its destructor ends all
/// connections and calls their on_closed. Do not destroy it on one of its own threads, nor inside
/// help or wait.
class Link {
 public:
  virtual ~Link() = default;
  /// The name that make_link takes, such as "tcp".
  virtual std::string kind() const = 0;
  /// Accepts at `address` ("host:port", where port 0 picks a free one) until the link is destroyed.
  /// Returns the address that peers can use. Throws kUnavailable if the port is in use, and
  /// kNotFound for an unknown host or one that is not this machine.
  virtual std::string listen(const std::string& address, Acceptor acceptor) = 0;
  /// Tries to connect once. `receiver` must live until its on_closed has returned.
  ///
  /// Throws kUnavailable if nobody listens, kNotFound for an unknown host, kDeadlineExceeded (also
  /// if the deadline's descriptor becomes readable), and kInvalidArgument if this kind of link can
  /// never reach the address.
  virtual std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                              Deadline deadline) = 0;
  /// Handles what has arrived, and sends what found no room before, for a short time on the calling
  /// thread. Returns false if there was nothing to do. A waiting thread polls by calling help for
  /// LinkOptions::spin, and then sleeps in `wait`.
  virtual bool help() = 0;
  /// Waits until `come` returns true, and asks it again each time that `wake` is raised. Returns
  /// false if the deadline passes first, or its descriptor becomes readable.
  ///
  /// While a thread waits here, a tcp link with one thread reads on the waiting thread, so that an
  /// arrival wakes no other thread first. A tcp link with several threads goes on reading on its
  /// own threads.
  virtual bool wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come);
};

/// Makes a link of a kind: "inproc", "tcp", "shm", or "auto", which uses shm between tasks of one
/// host and tcp between hosts. An inproc link made here reaches only itself: see inproc_link.h.
/// Throws kInvalidArgument naming --link.
std::unique_ptr<Link> make_link(const std::string& kind, const LinkOptions& options);

}  // namespace paceline
