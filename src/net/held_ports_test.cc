#include "net/held_ports.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <string>

namespace paceline {
namespace {

// Returns true if a process can listen at the address. If `reuse` is true, the socket sets
// SO_REUSEADDR, as tasks do and other programs may not.
bool can_listen(const std::string& address, bool reuse) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int value = reuse ? 1 : 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, sizeof value);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(std::uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
  const bool listens =
      bind(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0 && listen(fd, 1) == 0;
  close(fd);
  return listens;
}

TEST(HeldPorts, AreDifferentAndKeptForTasks) {
  const HeldPorts ports(20);
  EXPECT_EQ(std::set(ports.addresses().begin(), ports.addresses().end()).size(), 20U);
  for (const std::string& address : ports.addresses()) {
    EXPECT_TRUE(address.starts_with("127.0.0.1:"));
    EXPECT_FALSE(can_listen(address, false)) << address;
    EXPECT_TRUE(can_listen(address, true)) << address;
  }
}

}  // namespace
}  // namespace paceline
