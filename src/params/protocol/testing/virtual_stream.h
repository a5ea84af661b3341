// One end of the connection between a worker's process and a ps in virtual time. It drives
// protocol/send_log.h, as ResumableConnection does in a real job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "params/protocol/outbox.h"
#include "params/protocol/send_log.h"

namespace paceline {

/// The numbered messages that one end sends, over all connections.
class VirtualStream {
 public:
  struct Message {
    std::size_t bytes = 0;
    /// Called when the message has left for the first time, or when it cannot leave now. May be
    /// empty.
    std::function<void()> sent;
    /// Called at the other end, with the connection on which the message has arrived.
    std::function<void(PeerId wire)> arrived;
  };
  using Carry = std::function<void(PeerId wire, Message message)>;
  /// `carry` sends a message on a connection.
  explicit VirtualStream(Carry carry) : carry_(std::move(carry)) {}

  void push(Message message) {
    std::function<void()> unsent;
    if (wire_ == 0) unsent = std::exchange(message.sent, nullptr);
    log_.push(std::move(message));
    flush();
    if (unsent) unsent();
  }
  /// Lets messages flow on this connection, from the first that the other end has not handled. With
  /// the planted fault `forgets`, lost messages are not sent again.
  void go_on(PeerId wire, std::uint64_t handled, bool forgets = false) {
    log_.go_on(handled);
    while (forgets && log_.has_next()) log_.next();
    wire_ = wire;
    flush();
  }
  void confirm(std::uint64_t handled) {
    log_.confirm(handled);
    while (log_.has_confirmed()) log_.pop();
  }
  /// The connection has ended.
  void cut() { wire_ = 0; }

 private:
  void flush() {
    while (wire_ != 0 && log_.has_next()) {
      Message& next = log_.next();
      Message message = next;
      next.sent = nullptr;
      carry_(wire_, std::move(message));
    }
  }

  Carry carry_;
  PeerId wire_ = 0;  // 0: none
  SendLog<Message> log_;
};

}  // namespace paceline
