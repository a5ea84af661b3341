#include "net/tcp/tcp_acceptor.h"

#include <cerrno>

#include "net/accept/greeting.h"
#include "net/tcp/tcp_connection.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {
namespace {

constexpr std::size_t kMaxUnidentified = 1024, kMaxUnidentifiedOfOne = 512;

/// The proof that the caller belongs to the job, where one is due, and a preamble.
class TcpGreeting final : public Greeting {
 public:
  TcpGreeting(TcpAcceptor& acceptor, std::shared_ptr<Poller> poller, FileDescriptor socket,
              std::string caller)
      : Greeting(acceptor.weak_from_this(), std::move(poller), std::move(socket),
                 std::move(caller)),
        acceptor_(acceptor) {}

 private:
  ByteStream::Need hear(int fd) override {
    if (!stream_ && !(stream_ = acceptor_.streams().of_accepted(fd)))
      return ByteStream::Need::kReadable;
    begins();
    if (const auto need = stream_->open(); need != ByteStream::Need::kNothing) return need;
    while (filled_ < kPreambleBytes) {
      const iovec rest{bytes_.data() + filled_, bytes_.size() - filled_};
      const std::ptrdiff_t got = stream_->read({&rest, 1});
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return ByteStream::Need::kReadable;
      if (got <= 0) throw Error(ErrorCode::kUnavailable, "closed before it had said what it is");
      filled_ += std::size_t(got);
    }
    return ByteStream::Need::kNothing;
  }
  void hand_on(FileDescriptor socket) override {
    acceptor_.greeted(decode_preamble(bytes_), {std::move(socket), std::move(stream_)});
  }

  TcpAcceptor& acceptor_;
  std::unique_ptr<ByteStream> stream_;
  std::array<std::byte, kPreambleBytes> bytes_;
  std::size_t filled_ = 0;
};

}  // namespace

TcpAcceptor::TcpAcceptor(std::shared_ptr<TcpConnections> connections,
                         std::shared_ptr<const LinkStreams> streams, FileDescriptor listening,
                         Acceptor acceptor, std::optional<Offer> offer,
                         std::function<void(const std::string&)> refused)
    : SocketAcceptor(connections->poller(), std::move(listening),
                     {connections->dead_after(), kMaxUnidentified, kMaxUnidentifiedOfOne},
                     std::move(refused)),
      connections_(std::move(connections)),
      streams_(std::move(streams)),
      acceptor_(std::move(acceptor)),
      offer_(offer) {}

std::weak_ptr<TcpAcceptor> TcpAcceptor::weak_self() {
  return std::static_pointer_cast<TcpAcceptor>(shared_from_this());
}

std::shared_ptr<Greeting> TcpAcceptor::greeting_of(FileDescriptor socket) {
  set_up_socket(socket.get());
  std::string caller = text_of(peer_of(socket.get()));
  return std::make_shared<TcpGreeting>(*this, poller(), std::move(socket), std::move(caller));
}

void TcpAcceptor::greeted(const Preamble& preamble, StreamSocket socket) {
  std::unique_lock lock(mutex_);
  if (stopped()) return;
  if (preamble.role == SocketRole::kOffer) return answer(socket);
  if (preamble.role == SocketRole::kSharedMemory) return;  // not over TCP
  const auto twin = singles_.find(preamble.token);
  if (twin == singles_.end()) return wait_for_twin(preamble, std::move(socket));
  if (twin->second.role == preamble.role) return;
  StreamSocket other = std::move(twin->second.socket);
  singles_.erase(twin);
  lock.unlock();
  if (preamble.role == SocketRole::kData) {
    open(std::move(socket), std::move(other));
  } else {
    open(std::move(other), std::move(socket));
  }
}

/// A new socket takes so few bytes at once.
void TcpAcceptor::answer(const StreamSocket& socket) const {
  if (!offer_) return;
  auto bytes = encode(*offer_);
  const iovec all{bytes.data(), bytes.size()};
  socket.stream->write({&all, 1});
}

void TcpAcceptor::wait_for_twin(const Preamble& preamble, StreamSocket socket) {
  singles_.emplace(preamble.token, Single{preamble.role, std::move(socket)});
  call_late([weak = weak_self(), token = preamble.token] {
    if (const auto self = weak.lock()) self->drop_single(token);
  });
}

void TcpAcceptor::drop_single(const Preamble::Token& token) {
  std::lock_guard lock(mutex_);
  singles_.erase(token);
}

void TcpAcceptor::open(StreamSocket data, StreamSocket control) {
  const std::string peer = text_of(peer_of(data.fd.get()));
  const auto connection = std::make_shared<TcpConnection>(
      connections_, std::move(data), std::move(control), peer, TcpConnection::Made::kByPeer);
  try {
    connection->start(*acceptor_(connection));
  } catch (const std::exception&) {
    connection->refuse();
  }
}

}  // namespace paceline
