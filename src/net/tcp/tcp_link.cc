#include "net/tcp/tcp_link.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "net/accept/greeting.h"
#include "net/accept/offer.h"
#include "net/accept/preamble.h"
#include "net/accept/socket_acceptor.h"
#include "net/connection_end.h"
#include "net/tcp/tcp_connection.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {

// A waiting thread reads by itself, so that a reply wakes one thread instead of two; each wake-up
// takes some 20 µs.
//
// Lending a socket and taking it back take one call of epoll_ctl each, and nothing has to be
// cancelled. This is why the poller is our own (net/poll).
//
// A ps waits in Link::wait, too. So it reads by itself if its link has one thread. If the link has
// several threads, these go on reading in parallel.

class TcpWaiter::Borrowing {
 public:
  explicit Borrowing(TcpWaiter& waiter) : borrowed_(waiter.borrowed_) {}
  ~Borrowing() {
    for (const auto& connection : borrowed_) connection->take_back();
    borrowed_.clear();
  }
  Borrowing(const Borrowing&) = delete;
  Borrowing& operator=(const Borrowing&) = delete;

  void borrow(const TcpConnections& connections) {
    connections.for_each([this](const std::shared_ptr<TcpConnection>& connection) {
      borrowed_.push_back(connection);
      if (!connection->lend()) borrowed_.pop_back();
    });
  }

 private:
  std::vector<std::shared_ptr<TcpConnection>>& borrowed_;
};

/// Waits. In the middle of a message it does not sleep at once, because the rest is about to
/// arrive.
bool TcpWaiter::wait(const TcpConnections& connections, const EventFd& wake, Deadline deadline,
                     const std::function<bool()>& come) {
  if (come()) return true;
  Borrowing borrowing(*this);
  borrowing.borrow(connections);
  for (TimePoint awake_until; !come();) {
    if (deadline.passed()) return false;
    const TimePoint now = std::chrono::steady_clock::now();
    const bool sleeps = now >= awake_until || !in_message();
    if (read_until(wake, deadline, sleeps ? deadline.time() : now))
      awake_until = std::chrono::steady_clock::now() + connections.spin();
    if (given_up()) return come();
  }
  return true;
}

bool TcpWaiter::in_message() const {
  return std::ranges::any_of(borrowed_,
                             [](const auto& connection) { return connection->in_message(); });
}

/// Sleeps until bytes have arrived, and reads them. Returns false if it has read nothing because it
/// was woken, because `time` is reached, or because the deadline's descriptor is readable.
bool TcpWaiter::read_until(const EventFd& wake, Deadline deadline, TimePoint time) {
  polled_.assign({{wake.fd(), POLLIN, 0}, {deadline.descriptor(), POLLIN, 0}});
  for (const auto& connection : borrowed_) polled_.push_back({connection->fd(), POLLIN, 0});
  if (poll_until(polled_, Deadline::at(time)) != 0) return false;
  if (polled_.front().revents != 0) wake.clear();
  bool read = false;
  for (std::size_t i = 0; i < borrowed_.size(); ++i)
    if (polled_[i + kFirstConnection].revents != 0) read = borrowed_[i]->help() || read;
  return read;
}

bool TcpWaiter::given_up() const { return polled_[kDescriptor].revents != 0; }

/// Accepts sockets at one address and joins them in pairs, one pair for each connection. Drops a
/// socket that says nothing in time, or whose pair does not arrive in time. A socket that waits for
/// its pair costs a few hundred bytes.
class TcpAcceptor final : public SocketAcceptor {
 public:
  /// Tells `offer` to callers that ask for shared memory.
  TcpAcceptor(std::shared_ptr<TcpConnections> connections,
              std::shared_ptr<const LinkStreams> streams, FileDescriptor listening,
              Acceptor acceptor, std::optional<Offer> offer,
              std::function<void(const std::string&)> refused);

  const LinkStreams& streams() const { return *streams_; }

  /// Called when a socket has said what it is for.
  void greeted(const Preamble& preamble, StreamSocket socket);

 private:
  struct Single {
    SocketRole role;
    StreamSocket socket;
  };

  std::shared_ptr<Greeting> greeting_of(FileDescriptor socket) override;
  std::size_t waiting() const override { return singles_.size(); }
  void drop_waiting() override { singles_.clear(); }
  void answer(const StreamSocket& socket) const;
  void wait_for_twin(const Preamble& preamble, StreamSocket socket);
  void drop_single(const Preamble::Token& token);
  void open(StreamSocket data, StreamSocket control);
  std::weak_ptr<TcpAcceptor> weak_self();

  const std::shared_ptr<TcpConnections> connections_;
  const std::shared_ptr<const LinkStreams> streams_;
  const Acceptor acceptor_;
  const std::optional<Offer> offer_;
  std::map<Preamble::Token, Single> singles_;
};

namespace {

constexpr std::size_t kMaxUnidentified = 1024, kMaxUnidentifiedOfOne = 512;

/// Reads a preamble and, if one is required, the proof that the caller belongs to the job.
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
  if (preamble.role == SocketRole::kSharedMemory) return;  // Unix sockets have this role
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

/// Sends the offer with one call, since a new socket always has room for these few bytes.
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

namespace {

/// Sends the preamble with one call, since a new socket always has room for these few bytes.
void introduce(ByteStream& stream, const Preamble& preamble, const std::string& address) {
  auto bytes = encode(preamble);
  const iovec all{bytes.data(), bytes.size()};
  if (stream.write({&all, 1}) != std::ptrdiff_t(bytes.size()))
    throw error_of_socket(address, errno);
}

/// The listener has closed the socket after these bytes, which are not an offer: returns nullopt.
/// Throws if the bytes say that the listener accepts only callers that encrypt.
std::nullopt_t nothing_after(std::span<const std::byte> bytes, const std::string& address) {
  try {
    check_may_be_plain(bytes);
  } catch (const Error&) {
    throw error_of_current_exception(address);
  }
  return std::nullopt;
}

}  // namespace

TcpLink::TcpLink(const LinkOptions& options)
    : streams_(std::make_shared<LinkStreams>(options.security)),
      refused_(options.refused),
      connections_(
          std::make_shared<TcpConnections>(std::make_shared<Poller>(options.threads), options)),
      waiter_reads_(options.threads == 1),
      heartbeats_(
          std::in_place, options.dead_after / LivenessTimer::kTicksOfDeath, [this] { tick(); },
          options.ticks) {}

TcpLink::~TcpLink() {
  for (const auto& acceptor : acceptors_) acceptor->stop();
  heartbeats_.reset();
  connections_->poller()->stop();
  for (const auto& connection : connections_->shut())
    connection->end({ErrorCode::kCancelled,
                     "the link of the connection to " + connection->peer() + " was destroyed"});
  connections_->poller()->drop_pending();
}

void TcpLink::tick() {
  connections_->tick();
  const TimePoint now = std::chrono::steady_clock::now();
  std::vector<std::shared_ptr<TcpConnection>> callers = connections_->all();
  std::erase_if(callers, [](const auto& one) { return !one->made_by_peer(); });
  std::vector<IncomingStream*> streams;
  streams.reserve(callers.size());
  for (const auto& caller : callers) streams.push_back(&caller->incoming());
  const std::size_t bound = shares_.bound(streams, now - std::exchange(ticked_, now));
  for (const auto& caller : callers) {
    caller->bound_incoming(caller->incoming().within_host ? 0 : bound);
  }
}

std::string TcpLink::listen(const std::string& address, Acceptor acceptor) {
  return listen(address, std::move(acceptor), std::nullopt);
}

std::string TcpLink::publish(const std::string& address, const Offer& offer, Acceptor others) {
  return listen(address, std::move(others), offer);
}

std::string TcpLink::listen(const std::string& address, Acceptor acceptor,
                            std::optional<Offer> offer) {
  ListeningSocket socket = listen_at(parse_address(address));
  auto listening = std::make_shared<TcpAcceptor>(connections_, streams_, std::move(socket.fd),
                                                 std::move(acceptor), offer, refused_);
  listening->start();
  std::lock_guard lock(mutex_);
  acceptors_.push_back(std::move(listening));
  return socket.address;
}

/// Opens the stream of a socket that this side has connected. Both sides prove that they belong to
/// the job, if the link requires it.
StreamSocket TcpLink::open(FileDescriptor fd, const std::string& address, Deadline deadline) const {
  auto stream = streams_->of_dialled(fd.get(), address);
  try {
    for (auto need = stream->open(); need != ByteStream::Need::kNothing; need = stream->open()) {
      const short event = need == ByteStream::Need::kReadable ? POLLIN : POLLOUT;
      if (poll_one_until(fd.get(), event, deadline) != 0) throw error_of_silence(address);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDeadlineExceeded) throw;
    throw error_of_current_exception(address);
  }
  return {std::move(fd), std::move(stream)};
}

std::shared_ptr<Connection> TcpLink::connect(const std::string& address, Receiver& receiver,
                                             Deadline deadline) {
  const auto targets = look_up(parse_address(address), deadline);
  StreamSocket data = open(dial(targets, address, deadline), address, deadline);
  StreamSocket control = open(dial(targets, address, deadline), address, deadline);
  const Preamble::Token token = random_token();
  introduce(*data.stream, {SocketRole::kData, token}, address);
  introduce(*control.stream, {SocketRole::kControl, token}, address);
  auto connection = std::make_shared<TcpConnection>(
      connections_, std::move(data), std::move(control), address, TcpConnection::Made::kHere);
  connection->start(receiver);
  return connection;
}

std::optional<Offer> TcpLink::ask_for_offer(const std::string& address, Deadline deadline) {
  return ask(dial(look_up(parse_address(address), deadline), address, deadline), address, deadline);
}

std::optional<Offer> TcpLink::ask_own_host_for_offer(const std::string& address,
                                                     Deadline deadline) {
  FileDescriptor fd = dial(look_up(parse_address(address), deadline), address, deadline);
  return stays_on_host(fd.get()) ? ask(std::move(fd), address, deadline) : std::nullopt;
}

std::optional<Offer> TcpLink::ask(FileDescriptor fd, const std::string& address,
                                  Deadline deadline) const {
  const StreamSocket socket = open(std::move(fd), address, deadline);
  introduce(*socket.stream, {SocketRole::kOffer, {}}, address);
  std::array<std::byte, kOfferBytes> bytes;
  for (std::size_t at = 0; at < bytes.size();) {
    if (!socket.stream->holds_unread() && !wait_to_read(socket.fd.get(), deadline))
      throw error_of_silence(address);
    const iovec rest{bytes.data() + at, bytes.size() - at};
    const std::ptrdiff_t got = socket.stream->read({&rest, 1});
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return nothing_after(std::span(bytes).first(at), address);
    at += std::size_t(got);
  }
  return decode_offer(bytes);
}

bool TcpLink::help() { return connections_->help(); }

bool TcpLink::wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) {
  return waiter_reads_ ? waiter_.wait(*connections_, wake, deadline, come)
                       : Link::wait(wake, deadline, come);
}

std::unique_ptr<Link> make_tcp_link(const LinkOptions& options) {
  return std::make_unique<TcpLink>(options);
}

}  // namespace paceline
