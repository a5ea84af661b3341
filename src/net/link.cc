#include "net/link.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "net/accept/offer.h"
#include "net/inproc/inproc_link.h"
#include "net/link_kind.h"
#include "net/queued_frame.h"
#include "net/shm/shm_link.h"
#include "net/shm/shm_ring.h"
#include "net/tcp/tcp_link.h"
#include "net/tls/link_streams.h"

namespace paceline {
namespace {

/// Returns false if a limit or a sandbox keeps this process from sharing memory, or if all links
/// are encrypted.
bool may_share(const std::shared_ptr<const LinkSecurity>& security) {
  if (encrypts_within_host(security)) return false;
  try {
    SharedMemory::create(kShmMemoryBytes);
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// Uses shared memory between tasks of one host, and TCP between hosts.
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

  /// While there are shm connections, the caller sleeps until a receiver raises `wake`: each shm
  /// connection reads on its own thread.
  bool wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) override {
    return shm_.has_connections() ? Link::wait(wake, deadline, come)
                                  : tcp_->wait(wake, deadline, come);
  }

 private:
  const std::shared_ptr<const LinkSecurity> security_;
  const std::shared_ptr<TcpLink> tcp_;
  ShmLink shm_;
};

constexpr LinkKind kKinds[] = {
    {.name = "auto",
     .chooses = true,
     .shares_memory = true,
     .make = [](const LinkOptions& options) -> std::unique_ptr<Link> {
       return std::make_unique<AutoLink>(options);
     }},
    {.name = "shm",
     .shares_memory = true,
     .make = [](const LinkOptions& options) -> std::unique_ptr<Link> {
       return std::make_unique<ShmLink>(options, std::make_shared<TcpLink>(options));
     }},
    {.name = "tcp",
     .on_network = true,
     .make = [](const LinkOptions& options) -> std::unique_ptr<Link> {
       return make_tcp_link(options);
     }},
    {.name = "inproc",
     .within_a_process = true,
     .make = [](const LinkOptions& options) -> std::unique_ptr<Link> {
       return make_inproc_link(options, std::make_shared<InprocHub>());
     }},
};

}  // namespace

void Receiver::on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory>) {
  throw Error(ErrorCode::kDataLoss, "memory " + std::to_string(id) + " is shared, unasked");
}

void Connection::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  QueuedFrame frame{header, payload};
  frame.header.payload_bytes = std::uint32_t(payload.size());
  frame.keep_payload();
  send(frame.header, frame.payload, frame.sent, frame.context);
}

void Connection::share(std::uint32_t, std::shared_ptr<const SharedMemory>) {
  throw Error(ErrorCode::kFailedPrecondition, "no memory can be shared with " + peer());
}

bool Link::wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) {
  while (!come()) {
    if (deadline.passed()) return false;
    if (!wake.wait(deadline)) return come();
    wake.clear();
  }
  return true;
}

std::span<const LinkKind> link_kinds() { return kKinds; }

std::vector<std::string> link_names() {
  std::vector<std::string> names;
  for (const LinkKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

LinkKind link_traits(std::string_view name) {
  const auto* const kind = std::ranges::find(kKinds, name, &LinkKind::name);
  return kind == std::end(kKinds) ? LinkKind{.name = name} : *kind;
}

const LinkKind& link_kind(std::string_view name) {
  const auto* const kind = std::ranges::find(kKinds, name, &LinkKind::name);
  if (kind != std::end(kKinds)) return *kind;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("--link={}: there is no such link; there are {}", name,
                          fmt::join(link_names(), ", ")));
}

std::unique_ptr<Link> make_link(const std::string& kind, const LinkOptions& options) {
  const LinkKind& made = link_kind(kind);
  if (made.needs_one_host() && encrypts_within_host(options.security)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--link={} and --tls=on exclude each other: memory that tasks share is "
                            "not encrypted",
                            kind));
  }
  return made.make(options);
}

}  // namespace paceline
