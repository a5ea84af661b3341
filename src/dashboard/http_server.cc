#include "dashboard/http_server.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/address.h"
#include "base/failure_text.h"
#include "net/poll/poll_until.h"
#include "net/stream/socket_stream.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// While no descriptor is free, the server tries again at this interval.
constexpr Duration kAcceptAgain = std::chrono::milliseconds(200);

bool is_this_machine(const std::string& host) {
  try {
    return is_loopback(host);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

HttpServer::HttpServer(const Address& at, Handler handle, const HttpLimits& limits,
                       std::unique_ptr<const HttpsContext> https)
    : handle_(std::move(handle)),
      limits_(limits),
      https_(std::move(https)),
      listening_(listen_at(at)),
      only_here_(is_loopback(listening_.address)),
      thread_([this] { serve(); }) {}

HttpServer::~HttpServer() {
  stop_.raise();
  thread_.join();
}

// The server's thread runs at low priority. If the job keeps all cores busy, the page gets a tenth
// of a core.
void HttpServer::serve() {
  constexpr int kLowPriority = 10;
  setpriority(PRIO_PROCESS, id_t(gettid()), kLowPriority);
  while (true) {
    std::vector<pollfd> ready = descriptors();
    poll_until(ready, next_deadline());
    if (ready[0].revents != 0) return;
    auto client = clients_.begin();
    for (std::size_t i = 2; i < ready.size(); ++i) {
      const bool acts = ready[i].revents != 0 || holds_unread(*client);
      const bool over = client->deadline.passed() || (acts && !tend(*client));
      client = over ? clients_.erase(client) : std::next(client);
    }
    if (ready[1].revents != 0) accept();
  }
}

std::vector<pollfd> HttpServer::descriptors() const {
  std::vector<pollfd> all = {{stop_.fd(), POLLIN, 0}, {listening_.fd.get(), POLLIN, 0}};
  for (const Client& client : clients_) {
    const bool sends = client.need == ByteStream::Need::kWritable;
    all.push_back({client.fd.get(), short(sends ? POLLOUT : POLLIN), 0});
  }
  return all;
}

Deadline HttpServer::next_deadline() const {
  TimePoint next = Deadline::after(std::chrono::hours(1)).time();
  for (const Client& client : clients_) {
    if (holds_unread(client)) return Deadline::after(Duration::zero());
    next = std::min(next, client.deadline.time());
  }
  return Deadline::at(next);
}

void HttpServer::accept() {
  FileDescriptor fd(::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
      static_cast<void>(wait_to_read(stop_.fd(), Deadline::after(kAcceptAgain)));
    return;
  }
  if (clients_.size() >= limits_.most_connections) clients_.pop_front();
  clients_.push_back({.fd = std::move(fd), .deadline = Deadline::after(limits_.within)});
}

/// True if the stream holds bytes that it has already read; such bytes do not make the socket
/// readable.
bool HttpServer::holds_unread(const Client& client) {
  return client.open && client.need == ByteStream::Need::kReadable && client.stream->holds_unread();
}

bool HttpServer::tend(Client& client) try {
  if (!client.open && !open(client)) return true;
  return client.sent < client.answer.size() ? send(client) : read(client);
} catch (const Error&) {
  return false;
}

/// Returns false if the server must wait for the client.
bool HttpServer::open(Client& client) const {
  if (!client.stream) {
    unsigned char first = 0;
    if (::recv(client.fd.get(), &first, 1, MSG_PEEK) < 0) return false;
    client.plain = https_ != nullptr && first != kTlsHandshakeByte;
    const int fd = client.fd.get();
    client.stream =
        https_ && !client.plain ? https_->answer(fd) : std::make_unique<SocketStream>(fd);
  }
  const ByteStream::Need need = client.stream->open();
  client.open = need == ByteStream::Need::kNothing;
  client.need = client.open ? ByteStream::Need::kReadable : need;
  return client.open;
}

bool HttpServer::send(Client& client) {
  const iovec rest{client.answer.data() + client.sent, client.answer.size() - client.sent};
  const std::ptrdiff_t bytes = client.stream->write({&rest, 1});
  client.need = ByteStream::Need::kWritable;
  if (bytes < 0) return errno == EAGAIN || errno == EINTR;
  client.sent += std::size_t(bytes);
  if (client.sent < client.answer.size()) return true;
  // Reads on until the client closes the connection: if the server closed it while a part of the
  // request is unread, the client would lose the answer.
  client.finished = true;
  client.need = ByteStream::Need::kReadable;
  client.stream->shut_writing();
  return true;
}

bool HttpServer::read(Client& client) {
  std::array<char, 4096> bytes;
  const iovec room{bytes.data(), bytes.size()};
  const std::ptrdiff_t count = client.stream->read({&room, 1});
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  if (client.finished) return true;
  client.request.append(bytes.data(), std::size_t(count));
  const bool whole = head_bytes(client.request) > 0;
  if (!whole && client.request.size() <= kMostHeadBytes) return true;
  client.answer = text_of(answer_to(client), client.request.starts_with("HEAD "));
  return send(client);
}

HttpResponse HttpServer::answer_to(const Client& client) const {
  const std::size_t head = head_bytes(client.request);
  if (head == 0 || head > kMostHeadBytes)
    return {.status = 431, .body = "The request is too long.\n"};
  const auto request = parse_http_request(std::string_view(client.request).substr(0, head));
  if (!request) return {.status = 400, .body = "This is no HTTP request.\n"};
  if (client.plain)
    return {.status = 400, .body = "This page is encrypted: write https:// before its address.\n"};
  if (request->method != "GET" && request->method != "HEAD")
    return {.status = 405, .body = "This page can only be read: GET.\n"};
  // Refuses requests from pages of other sites whose names were made to resolve to this machine,
  // since such pages could read this one.
  if (only_here_ && !is_this_machine(request->host))
    return {.status = 403, .body = "Ask for it by the name localhost or 127.0.0.1.\n"};
  return handled(*request);
}

HttpResponse HttpServer::handled(const HttpRequest& request) const {
  try {
    return handle_(request);
  } catch (const std::exception& error) {
    return {.status = 500, .body = failure_text(error) + "\n"};
  }
}

}  // namespace paceline
