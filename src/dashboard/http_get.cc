#include "dashboard/http_get.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "base/address.h"
#include "dashboard/https_context.h"
#include "net/poll/poll_until.h"
#include "net/stream/socket_stream.h"
#include "net/tcp/name_lookup.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {
namespace {

constexpr std::string_view kHttp = "http://", kHttps = "https://";
constexpr std::size_t kMostAnswerBytes = std::size_t{1} << 24;

/// A connection to the server, encrypted or not.
class Caller {
 public:
  Caller(const std::string& address, const HttpsContext* https, Deadline deadline)
      : address_(address),
        deadline_(deadline),
        fd_(dial(look_up(parse_address(address), deadline), address, deadline)),
        stream_(https == nullptr ? std::make_unique<SocketStream>(fd_.get())
                                 : https->call(fd_.get(), parse_address(address).host)) {
    for (auto need = stream_->open(); need != ByteStream::Need::kNothing; need = stream_->open())
      wait(need == ByteStream::Need::kReadable ? POLLIN : POLLOUT);
  }

  void send(std::string_view text) {
    while (!text.empty()) {
      const iovec rest{const_cast<char*>(text.data()), text.size()};
      const std::ptrdiff_t sent = stream_->write({&rest, 1});
      if (sent < 0) check(errno, POLLOUT);
      if (sent > 0) text.remove_prefix(std::size_t(sent));
    }
  }
  /// Returns all that the server sends until it closes the connection.
  std::string receive() {
    std::string text;
    std::array<char, 65536> bytes;
    while (text.size() <= kMostAnswerBytes) {
      const iovec room{bytes.data(), bytes.size()};
      const std::ptrdiff_t count = stream_->read({&room, 1});
      if (count == 0) return text;
      if (count < 0) check(errno, POLLIN);
      if (count > 0) text.append(bytes.data(), std::size_t(count));
    }
    throw Error(ErrorCode::kDataLoss, fmt::format("{} answers without end", address_));
  }

 private:
  void check(int error_number, short event) const {
    if (error_number == EAGAIN) return wait(event);
    if (error_number != EINTR) throw error_of_socket(address_, error_number);
  }
  void wait(short event) const {
    if (poll_one_until(fd_.get(), event, deadline_) == 0) return;
    throw Error(ErrorCode::kUnavailable, fmt::format("{} does not answer", address_));
  }

  const std::string address_;
  const Deadline deadline_;
  const FileDescriptor fd_;
  const std::unique_ptr<ByteStream> stream_;
};

std::string ask(const std::string& address, const HttpsContext* https, const std::string& request,
                Deadline deadline) {
  Caller caller(address, https, deadline);
  caller.send(request);
  return caller.receive();
}

/// Adds the server's name to errors, since the stream's own errors do not have it.
std::string ask_encrypted(const std::string& address, const std::string& authority,
                          const std::string& request, Deadline deadline) {
  const HttpsContext https = HttpsContext::of_caller({"--dashboard-ca", authority});
  try {
    return ask(address, &https, request, deadline);
  } catch (const Error& error) {
    if (std::string_view(error.what()).find(address) != std::string_view::npos) throw;
    throw Error(error.code(), fmt::format("{}: {}", address, error.what()));
  }
}

}  // namespace

bool is_http_url(std::string_view text) {
  return text.starts_with(kHttp) || text.starts_with(kHttps);
}

HttpResponse http_get(const std::string& url, Deadline deadline, const HttpCaller& caller) {
  if (!is_http_url(url)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("'{}' is no http://HOST:PORT or https://HOST:PORT", url));
  }
  const bool encrypts = url.starts_with(kHttps);
  const std::size_t begin = (encrypts ? kHttps : kHttp).size();
  const std::size_t slash = std::min(url.find('/', begin), url.size());
  const std::string address = url.substr(begin, slash - begin);
  const std::string path = slash == url.size() ? "/" : url.substr(slash);
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n", path, address,
                  caller.token.empty() ? "" : "Authorization: Bearer " + caller.token + "\r\n");
  const std::string answer = encrypts ? ask_encrypted(address, caller.authority, request, deadline)
                                      : ask(address, nullptr, request, deadline);
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  const std::size_t head = head_bytes(answer);
  HttpResponse response;
  const char* const digits = answer.data() + kVersion.size();
  const bool numbered = head > kVersion.size() + 3 && answer.starts_with(kVersion) &&
                        std::from_chars(digits, digits + 3, response.status).ec == std::errc();
  if (!numbered) throw Error(ErrorCode::kDataLoss, fmt::format("{} speaks no HTTP", address));
  response.body = answer.substr(head);
  return response;
}

}  // namespace paceline
