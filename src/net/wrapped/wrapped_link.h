// A link with a layer between it and its users. The classes here only forward.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/link.h"

namespace paceline {

/// Forwards every call to another receiver, which must outlive it.
class ForwardingReceiver : public Receiver {
 public:
  explicit ForwardingReceiver(Receiver& receiver) : receiver_(receiver) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    return receiver_.place_payload(header);
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    receiver_.on_frame(header, payload);
  }
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override {
    receiver_.on_shared(id, std::move(memory));
  }
  void on_closed(const Error& error) override { receiver_.on_closed(error); }

 private:
  Receiver& receiver_;
};

/// Forwards every call to another connection, but passes a send_copy on as a send, so that a
/// subclass need override only send.
class ForwardingConnection : public Connection {
 public:
  explicit ForwardingConnection(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  void send(const FrameHeader& header, std::span<const std::byte> payload, void (*sent)(void*),
            void* context) override {
    connection_->send(header, payload, sent, context);
  }
  void close(Deadline deadline) override { connection_->close(deadline); }
  bool can_share() const override { return connection_->can_share(); }
  void share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override {
    connection_->share(id, std::move(memory));
  }
  bool idle() const override { return connection_->idle(); }
  std::string peer() const override { return connection_->peer(); }
  std::string_view kind() const override { return connection_->kind(); }
  bool encrypted() const override { return connection_->encrypted(); }
  std::optional<Duration> round_trip() const override { return connection_->round_trip(); }
  const Traffic& traffic() const override { return connection_->traffic(); }

 private:
  const std::shared_ptr<Connection> connection_;
};

/// Says how to wrap another link. `peer` is the address to which this side connected, or the
/// accepted connection's name for its peer.
struct LinkWrapping {
  /// Makes the receiver that replaces `receiver`, which outlives it.
  std::function<std::unique_ptr<Receiver>(Receiver& receiver, const std::string& peer)> receiver;
  /// Makes the connection that replaces `connection`. If this function is empty, nothing replaces
  /// connections.
  std::function<std::shared_ptr<Connection>(std::shared_ptr<Connection> connection,
                                            const std::string& peer)>
      connection = {};
};

/// Forwards every call to another link, and wraps its receivers and connections. Owns the link and
/// the receivers.
class WrappedLink final : public Link {
 public:
  WrappedLink(std::unique_ptr<Link> link, LinkWrapping wrapping);

  std::string kind() const override { return link_->kind(); }
  std::string listen(const std::string& address, Acceptor acceptor) override;
  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override;
  bool help() override { return link_->help(); }
  bool wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) override {
    return link_->wait(wake, deadline, come);
  }

 private:
  Receiver* wrap(Receiver& receiver, const std::string& peer);
  std::shared_ptr<Connection> wrap(std::shared_ptr<Connection> connection, const std::string& peer);

  const LinkWrapping wrapping_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  std::unique_ptr<Link> link_;  // last, so destroyed first: its threads call receivers_
};

}  // namespace paceline
