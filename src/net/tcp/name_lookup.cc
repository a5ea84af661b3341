#include "net/tcp/name_lookup.h"

#include <netdb.h>

#include <array>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "paceline/error.h"

namespace paceline {
namespace {

/// getaddrinfo takes no deadline and cannot be stopped, so a separate thread calls it. Nobody waits
/// for that thread to end, and it owns everything that it uses.
NameAnswer ask_until(const Address& address, Deadline deadline, const NameService& service) {
  std::promise<NameAnswer> promise;
  std::future<NameAnswer> answer = promise.get_future();
  std::thread([address, service, promise = std::move(promise)]() mutable {
    promise.set_value(service(address, 0));
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

NameAnswer ask_system(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(address.port);
  NameAnswer answer;
  answer.status = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &list);
  if (answer.status != 0) return answer;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    SocketAddress& found = answer.addresses.emplace_back();
    std::memcpy(&found.storage, one->ai_addr, one->ai_addrlen);
    found.bytes = one->ai_addrlen;
  }
  return answer;
}

std::vector<SocketAddress> look_up(const Address& address, Deadline deadline,
                                   const NameService& service) {
  const NameAnswer numeric = ask_system(address, AI_NUMERICHOST);
  if (numeric.status == 0) return numeric.addresses;
  const NameAnswer found = ask_until(address, deadline, service);
  if (found.status != 0)
    throw Error(ErrorCode::kNotFound,
                "unknown host '" + address.host + "' (" + ::gai_strerror(found.status) + ")");
  return found.addresses;
}

}  // namespace paceline
