#include "net/held_ports.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/address.h"
#include "net/tcp/name_lookup.h"
#include "paceline/error.h"

namespace paceline {

std::string everywhere(const std::string& host) {
  return host.find(':') == std::string::npos ? "0.0.0.0" : "::";
}

HeldPorts::HeldPorts(int count, const std::string& host, int first_port) {
  try {
    for (int i = 0; i < count; ++i) hold_one(host, first_port == 0 ? 0 : first_port + i);
  } catch (...) {
    for (const int socket : sockets_) close(socket);
    throw;
  }
}

HeldPorts::~HeldPorts() {
  for (const int socket : sockets_) close(socket);
}

// Binds a port and does not listen on it. Linux lets a second socket, that of the task, bind the
// port if both set SO_REUSEADDR and neither listens. If this process only looked the port up and
// released it, another process could take it before the task starts.
void HeldPorts::hold_one(const std::string& host, int port) {
  // A numeric address is resolved at once.
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  SocketAddress address = look_up({host, std::uint16_t(port)}, deadline).front();
  const int fd = socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) sockets_.push_back(fd);
  const int yes = 1;
  const bool bound = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                     bind(fd, address.get(), address.bytes) == 0 &&
                     getsockname(fd, address.get(), &address.bytes) == 0;
  if (!bound) {
    const std::string what = port == 0 ? "no free port" : fmt::format("no port {}", port);
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} on {}: {}", what, host, std::strerror(errno)));
  }
  addresses_.push_back(text_of(address));
}

}  // namespace paceline
