#include "net/tcp/name_lookup.h"

#include <netdb.h>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <thread>

#include "paceline/error.h"

namespace paceline {
namespace {

struct Found {
  int status = 0;
  std::vector<SocketAddress> addresses;
};

Found ask(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  Found found;
  found.status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (found.status != 0) return found;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    SocketAddress& address = found.addresses.emplace_back();
    std::copy_n(reinterpret_cast<const char*>(one->ai_addr), one->ai_addrlen,
                reinterpret_cast<char*>(&address.storage));
    address.bytes = one->ai_addrlen;
  }
  return found;
}

/// getaddrinfo takes no deadline and cannot be stopped: a thread that nobody waits for asks it, and
/// owns all that it touches.
Found ask_until(const Address& address, Deadline deadline) {
  std::promise<Found> promise;
  std::future<Found> answer = promise.get_future();
  std::thread([host = address.host, port = std::to_string(address.port),
               promise = std::move(promise)]() mutable {
    promise.set_value(ask(host, port, 0));
  }).detach();
  if (answer.wait_until(deadline.time()) != std::future_status::ready)
    throw Error(ErrorCode::kDeadlineExceeded,
                "looking up the host '" + address.host + "' took too long");
  return answer.get();
}

}  // namespace

std::string text_of(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const int status = ::getnameinfo(address.get(), address.bytes, host.data(), host.size(),
                                   port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  if (status != 0) return "a peer without address";
  const std::string name = host.data();
  return (name.find(':') == std::string::npos ? name : "[" + name + "]") + ":" + port.data();
}

std::vector<SocketAddress> look_up(const Address& address, Deadline deadline) {
  Found found = ask(address.host, std::to_string(address.port), AI_NUMERICHOST);
  if (found.status == 0) return found.addresses;
  found = ask_until(address, deadline);
  if (found.status != 0)
    throw Error(ErrorCode::kNotFound,
                "unknown host '" + address.host + "' (" + ::gai_strerror(found.status) + ")");
  return found.addresses;
}

}  // namespace paceline
