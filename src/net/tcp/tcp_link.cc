#include "net/tcp/tcp_link.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "net/accept/preamble.h"
#include "net/connection_end.h"
#include "net/poll/poll_until.h"
#include "net/tcp/tcp_acceptor.h"
#include "net/tcp/tcp_connection.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {
namespace {

/// Sends the preamble with one call: a new socket takes so few bytes at once.
void introduce(ByteStream& stream, const Preamble& preamble, const std::string& address) {
  auto bytes = encode(preamble);
  const iovec all{bytes.data(), bytes.size()};
  if (stream.write({&all, 1}) != std::ptrdiff_t(bytes.size()))
    throw error_of_socket(address, errno);
}

/// The other side has ended the socket after these bytes, which are no offer.
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
  for (const auto& caller : callers) caller->bound_incoming(bound);
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

/// Proves on both sides of a socket that they belong to the job, where that is due.
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
