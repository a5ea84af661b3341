#include "net/shm/shm_link.h"

#include "net/shm/shm_acceptor.h"
#include "net/shm/shm_connection.h"
#include "net/shm/shm_handshake.h"
#include "net/shm/shm_ring.h"
#include "net/tcp/tcp_link.h"

namespace paceline {
namespace {

Receiver* refuse_tcp(const std::shared_ptr<Connection>& connection) {
  throw Error(ErrorCode::kUnavailable,
              "--link shm: " + connection->peer() + " is no task of this host");
}

class ShmLink : public Link {
 public:
  ShmLink(const LinkOptions& options, OtherHosts others)
      : others_(others),
        tcp_(options),
        connections_(std::make_shared<ShmConnections>(tcp_.poller(), options)),
        heartbeats_(
            std::in_place, options.dead_after / LivenessTimer::kTicksOfDeath,
            [this] { connections_->tick(); }, options.ticks) {}

  ~ShmLink() override {
    for (const auto& acceptor : acceptors_) acceptor->stop();
    heartbeats_.reset();
    for (const auto& connection : connections_->shut())
      connection->end({ErrorCode::kCancelled,
                       "the link of the connection to " + connection->peer() + " was destroyed"});
  }

  std::string kind() const override { return others_ == OtherHosts::kOverTcp ? "auto" : "shm"; }

  std::string listen(const std::string& address, Acceptor acceptor) override {
    if (!can_share()) return tcp_.listen(address, std::move(acceptor));
    const Offer offer{random_token(), random_token()};
    auto listening = std::make_shared<ShmAcceptor>(connections_, offer, acceptor);
    // A caller that is offered it before it accepts waits there.
    std::string heard_at = tcp_.listen(address, over_tcp(std::move(acceptor)), offer);
    listening->start();
    std::lock_guard lock(mutex_);
    acceptors_.push_back(std::move(listening));
    return heard_at;
  }

  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override {
    if (!can_share()) return tcp_.connect(address, receiver, deadline);
    const std::optional<Offer> offer = tcp_.ask_for_offer(address, deadline);
    std::optional<ShmReached> reached;
    if (offer) reached = reach(*offer, address, deadline);
    if (reached) return start(std::move(*reached), address, receiver);
    if (others_ == OtherHosts::kOverTcp) return tcp_.connect(address, receiver, deadline);
    const std::string what = "--link shm: no memory can be shared with " + address;
    // A listener that is about to end makes no offer either: the next try may find another one.
    if (!offer)
      throw Error(ErrorCode::kUnavailable,
                  what + ": it offers none (was it started with --link tcp?)");
    throw Error(ErrorCode::kInvalidArgument,
                what +
                    ": it is on another host, or in another network namespace; --link auto "
                    "takes tcp then");
  }

  bool help() override {
    const bool helped = connections_->help();
    return (others_ == OtherHosts::kOverTcp && tcp_.help()) || helped;
  }

  /// The connection's own thread reads what arrives through memory, and raises `wake`.
  bool wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) override {
    return connections_->none() ? tcp_.wait(wake, deadline, come)
                                : Link::wait(wake, deadline, come);
  }

  void set_spinning(bool spinning) override {
    tcp_.set_spinning(spinning);
    connections_->set_spinning(spinning);
    for (const auto& connection : connections_->all()) connection->reconsider();
  }

 private:
  /// False where tcp will do and this process may not share memory: a limit or a sandbox forbids
  /// it. With shm alone, what fails says why.
  bool can_share() const {
    if (others_ == OtherHosts::kRefused) return true;
    try {
      SharedMemory::create(kShmMemoryBytes);
    } catch (const Error&) {
      return false;
    }
    return true;
  }
  Acceptor over_tcp(Acceptor acceptor) const {
    return others_ == OtherHosts::kOverTcp ? std::move(acceptor) : Acceptor(refuse_tcp);
  }

  std::shared_ptr<Connection> start(ShmReached reached, const std::string& address,
                                    Receiver& receiver) {
    auto connection =
        std::make_shared<ShmConnection>(connections_, std::move(reached.socket),
                                        std::move(reached.own), std::move(reached.peers), address);
    connection->start(receiver);
    return connection;
  }

  const OtherHosts others_;
  TcpLink tcp_;
  const std::shared_ptr<ShmConnections> connections_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<ShmAcceptor>> acceptors_;
  std::optional<HeartbeatThread> heartbeats_;
};

}  // namespace

std::unique_ptr<Link> make_shm_link(const LinkOptions& options, OtherHosts others) {
  return std::make_unique<ShmLink>(options, others);
}

}  // namespace paceline
