#include "dashboard/http_get.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "base/address.h"
#include "net/poll/poll_until.h"
#include "net/tcp/name_lookup.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::size_t kMostAnswerBytes = std::size_t{1} << 24;

void wait(int fd, short events, const std::string& address, Deadline deadline) {
  if (poll_one_until(fd, events, deadline) == 0) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("{} does not answer", address));
}

void send_all(int fd, std::string_view text, const std::string& address, Deadline deadline) {
  while (!text.empty()) {
    wait(fd, POLLOUT, address, deadline);
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) throw error_of_socket(address, errno);
    if (sent > 0) text.remove_prefix(std::size_t(sent));
  }
}

std::string receive_all(int fd, const std::string& address, Deadline deadline) {
  std::string text;
  std::array<char, 65536> bytes;
  while (text.size() <= kMostAnswerBytes) {
    wait(fd, POLLIN, address, deadline);
    const ssize_t count = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (count == 0) return text;
    if (count < 0 && errno != EAGAIN && errno != EINTR) throw error_of_socket(address, errno);
    if (count > 0) text.append(bytes.data(), std::size_t(count));
  }
  throw Error(ErrorCode::kDataLoss, fmt::format("{} answers without end", address));
}

}  // namespace

HttpResponse http_get(const std::string& url, Deadline deadline, const std::string& token) {
  if (!url.starts_with(kScheme)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("'{}' is no http://HOST:PORT", url));
  }
  const std::size_t slash = std::min(url.find('/', kScheme.size()), url.size());
  const std::string address = url.substr(kScheme.size(), slash - kScheme.size());
  const std::string path = slash == url.size() ? "/" : url.substr(slash);
  const FileDescriptor fd = dial(look_up(parse_address(address), deadline), address, deadline);
  send_all(fd.get(),
           fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n", path, address,
                       token.empty() ? "" : "Authorization: Bearer " + token + "\r\n"),
           address, deadline);
  const std::string answer = receive_all(fd.get(), address, deadline);
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
