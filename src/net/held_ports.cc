#include "net/held_ports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "paceline/error.h"

namespace paceline {

HeldPorts::HeldPorts(int count) {
  try {
    for (int i = 0; i < count; ++i) hold_one();
  } catch (...) {
    for (const int socket : sockets_) close(socket);
    throw;
  }
}

HeldPorts::~HeldPorts() {
  for (const int socket : sockets_) close(socket);
}

// Linux lets a second socket bind a port when both say SO_REUSEADDR and none listens; a port that
// was only looked up and released could be taken before the task starts.
void HeldPorts::hold_one() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) sockets_.push_back(fd);
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                     bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (!bound) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("no free port on 127.0.0.1: {}", std::strerror(errno)));
  }
  addresses_.push_back(fmt::format("127.0.0.1:{}", ntohs(address.sin_port)));
}

}  // namespace paceline
