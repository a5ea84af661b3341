#include "net/auto_link/auto_link.h"

#include <optional>
#include <utility>

#include "net/accept/offer.h"
#include "net/memory/shared_memory.h"
#include "net/shm/shm_link.h"
#include "net/shm/shm_ring.h"
#include "net/tcp/tcp_link.h"
#include "net/tls/link_streams.h"
#include "paceline/error.h"

namespace paceline {
namespace {

/// False where a limit or a sandbox forbids this process to share memory, or all is encrypted.
bool may_share(const std::shared_ptr<const LinkSecurity>& security) {
  if (encrypts_within_host(security)) return false;
  try {
    SharedMemory::create(kShmMemoryBytes);
  } catch (const Error&) {
    return false;
  }
  return true;
}

class AutoLink : public Link {
 public:
  explicit AutoLink(const LinkOptions& options)
      : security_(options.security),
        tcp_(std::make_shared<TcpLink>(options)),
        shm_(options, tcp_) {}

  std::string kind() const override { return "auto"; }

  std::string listen(const std::string& address, Acceptor acceptor) override {
    if (!may_share(security_)) return tcp_->listen(address, std::move(acceptor));
    return shm_.listen(address, acceptor, acceptor);
  }

  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override {
    if (!may_share(security_)) return tcp_->connect(address, receiver, deadline);
    const std::optional<Offer> offer = tcp_->ask_own_host_for_offer(address, deadline);
    std::shared_ptr<Connection> shared;
    if (offer) shared = shm_.connect(*offer, address, receiver, deadline);
    return shared ? shared : tcp_->connect(address, receiver, deadline);
  }

  bool help() override {
    const bool helped = shm_.help();
    return tcp_->help() || helped;
  }

  /// Frames that arrive through memory are read by the connection's own thread, which raises
  /// `wake`.
  bool wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) override {
    return shm_.has_connections() ? Link::wait(wake, deadline, come)
                                  : tcp_->wait(wake, deadline, come);
  }

 private:
  const std::shared_ptr<const LinkSecurity> security_;
  const std::shared_ptr<TcpLink> tcp_;
  ShmLink shm_;
};

}  // namespace

std::unique_ptr<Link> make_auto_link(const LinkOptions& options) {
  return std::make_unique<AutoLink>(options);
}

}  // namespace paceline
