#include "net/auto_link/auto_link.h"

#include <optional>
#include <utility>

#include "net/accept/offer.h"
#include "net/shm/shm_link.h"
#include "net/tcp/tcp_link.h"

namespace paceline {
namespace {

class AutoLink : public Link {
 public:
  explicit AutoLink(const LinkOptions& options)
      : tcp_(std::make_shared<TcpLink>(options)), shm_(options, tcp_) {}

  std::string kind() const override { return "auto"; }

  std::string listen(const std::string& address, Acceptor acceptor) override {
    return shm_.listen(address, acceptor, acceptor);
  }

  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override {
    const std::optional<Offer> offer = tcp_->ask_for_offer(address, deadline);
    std::shared_ptr<Connection> shared;
    if (offer) shared = shm_.connect(*offer, address, receiver, deadline);
    return shared ? shared : tcp_->connect(address, receiver, deadline);
  }

  bool help() override {
    const bool helped = shm_.help();
    return tcp_->help() || helped;
  }

  /// What arrives through memory is read by the connection's own thread, which raises `wake`.
  bool wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) override {
    return shm_.has_connections() ? Link::wait(wake, deadline, come)
                                  : tcp_->wait(wake, deadline, come);
  }

  void set_spinning(bool spinning) override {
    tcp_->set_spinning(spinning);
    shm_.set_spinning(spinning);
  }

 private:
  const std::shared_ptr<TcpLink> tcp_;
  ShmLink shm_;
};

}  // namespace

std::unique_ptr<Link> make_auto_link(const LinkOptions& options) {
  return std::make_unique<AutoLink>(options);
}

}  // namespace paceline
