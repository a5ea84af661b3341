#include "net/wrapped/wrapped_link.h"

namespace paceline {

WrappedLink::WrappedLink(std::unique_ptr<Link> link, LinkWrapping wrapping)
    : wrapping_(std::move(wrapping)), link_(std::move(link)) {}

Receiver* WrappedLink::wrap(Receiver& receiver, const std::string& peer) {
  std::unique_ptr<Receiver> wrapped = wrapping_.receiver(receiver, peer);
  const std::lock_guard lock(mutex_);
  receivers_.push_back(std::move(wrapped));
  return receivers_.back().get();
}

std::shared_ptr<Connection> WrappedLink::wrap(std::shared_ptr<Connection> connection,
                                              const std::string& peer) {
  if (!wrapping_.connection) return connection;
  return wrapping_.connection(std::move(connection), peer);
}

std::string WrappedLink::listen(const std::string& address, Acceptor acceptor) {
  return link_->listen(
      address, [this, acceptor = std::move(acceptor)](std::shared_ptr<Connection> connection) {
        const std::string peer = connection->peer();
        return wrap(*acceptor(wrap(std::move(connection), peer)), peer);
      });
}

std::shared_ptr<Connection> WrappedLink::connect(const std::string& address, Receiver& receiver,
                                                 Deadline deadline) {
  return wrap(link_->connect(address, *wrap(receiver, address), deadline), address);
}

}  // namespace paceline
