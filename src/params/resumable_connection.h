// ResumableConnection: the messages of a worker and a ps, over any number of connections.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/link.h"
#include "net/queued_frame.h"
#include "params/protocol/send_log.h"

namespace paceline {

/// Carries numbered messages (is_numbered): the other side handles each of them once and in order,
/// whatever happens to the connections. Each message is kept until the other side has confirmed it,
/// and is sent again on the next connection. The `sent` of send() is called on that confirmation.
/// All other messages go over the present connection, or nowhere. Thread-safe.
class ResumableConnection final : public Connection {
 public:
  /// Makes messages again, so that they need not be kept. For messages whose payload can be made at
  /// any time.
  class Source {
   public:
    virtual ~Source() = default;
    virtual bool makes(const FrameHeader& header) const = 0;
    /// Sends the message on `to`. The payload of the first sending had `bytes` bytes.
    virtual void make(const FrameHeader& header, std::size_t bytes, Connection& to) = 0;
  };
  /// `receiver` gets arriving messages, and on_closed at the end of each connection. `receiver` and
  /// `source` must outlive this object.
  explicit ResumableConnection(Receiver& receiver, Source* source = nullptr)
      : receiver_(receiver), source_(source) {}
  ~ResumableConnection() override { abandon(); }

  // The present connection.
  /// Takes over a connection that has just been made. The handshake can then begin.
  void open(std::shared_ptr<Connection> connection);
  /// Gives the connection away. This object then has none, and its owner is not told how the
  /// connection ends.
  std::shared_ptr<Connection> release();
  /// Call it when the handshake is over: numbered messages flow from now on, beginning with the
  /// first that the other side has not handled. Throws kDataLoss when `handled_there` is
  /// impossible.
  void go_on(std::uint64_t handled_there);
  /// Numbered messages that the receiver has handled.
  std::uint64_t handled() const { return handled_; }
  /// True when the other side has handled everything that was sent.
  bool all_confirmed() const;
  /// True when the receiver threw because the other side's messages make no sense.
  bool broken() const { return broken_; }
  /// Sends nothing any more, and gives back everything that was kept.
  void abandon();

  // Calls of the present connection, through an Inlet.
  std::span<std::byte> place_payload(const FrameHeader& header);
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload);
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory);
  void on_closed(const Error& error);

  void send(const FrameHeader& header, std::span<const std::byte> payload, void (*sent)(void*),
            void* context) override;
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override;
  void close(Deadline deadline) override;
  bool can_share() const override;
  void share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override;
  bool idle() const override;
  std::string peer() const override;
  std::string_view kind() const override;
  bool encrypted() const override;
  std::optional<Duration> round_trip() const override;
  const Traffic& traffic() const override;

 private:
  struct Item {
    QueuedFrame frame;
    bool made_again = false;  // the source makes the message again, so its payload is not kept
    bool given = false;       // given to some connection
  };
  void queue(Item item);
  void send_waiting(std::unique_lock<std::mutex>& lock);
  void hand_over(Connection& connection, const Item& item);
  void give_back_confirmed(std::unique_lock<std::mutex>& lock);
  void confirm_handled(bool at_once);
  template <typename Call>
  auto guarded(Call&& call);
  std::shared_ptr<Connection> present() const;

  Receiver& receiver_;
  Source* const source_;

  mutable std::mutex mutex_;
  std::shared_ptr<Connection> connection_;  // null: the connection was cut
  bool flows_ = false;                      // numbered messages may be sent on it
  bool sending_ = false;                    // some thread is in send_waiting
  bool abandoned_ = false;
  /// Whether the first connection could share memory. Later connections keep this answer, since
  /// both sides rely on it.
  bool can_share_ = false;
  std::string peer_;
  std::string_view kind_;               // of the last connection
  bool encrypted_ = false;              // of the last connection
  std::optional<Duration> round_trip_;  // of the connection that ended last
  SendLog<Item> log_;
  mutable Traffic traffic_;  // of all connections, at the last call of traffic()
  std::int64_t sent_before_ = 0, received_before_ = 0, busy_before_ = 0;  // of ended connections

  HandledCount count_;  // of the receiving thread
  std::atomic<std::uint64_t> handled_{0};
  std::atomic<bool> broken_{false};
};

/// The receiver of a link's connection, which hands everything to a ResumableConnection.
class Inlet : public Receiver {
 public:
  explicit Inlet(ResumableConnection& to) : to_(&to) {}
  /// Hands everything to another connection from now on. Call it inside a call of the connection.
  void redirect(ResumableConnection& to) { to_ = &to; }

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    return to_->place_payload(header);
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    to_->on_frame(header, payload);
  }
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override {
    to_->on_shared(id, std::move(memory));
  }
  void on_closed(const Error& error) override { to_->on_closed(error); }

 private:
  ResumableConnection* to_;
};

}  // namespace paceline
