// Free ports of this host, kept for tasks that are about to listen on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

/// Returns the address that stands for all addresses of a host: "0.0.0.0", or "::" if `host` is an
/// IPv6 address.
std::string everywhere(const std::string& host);

/// Binds `count` sockets and never listens on them. So the system gives their ports to nobody else,
/// except to a task that listens with SO_REUSEADDR. One thread at a time may use it.
class HeldPorts {
 public:
  /// Binds at an address of this host, given without a port. The first socket has `first_port`, and
  /// the others the ports after it; 0: the system chooses. Throws kUnavailable if there are not
  /// enough ports, or another process listens there.
  explicit HeldPorts(int count, const std::string& host = "127.0.0.1", int first_port = 0);
  ~HeldPorts();
  HeldPorts(const HeldPorts&) = delete;
  HeldPorts& operator=(const HeldPorts&) = delete;

  /// The addresses, such as "127.0.0.1:40123".
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  void hold_one(const std::string& host, int port);

  std::vector<int> sockets_;
  std::vector<std::string> addresses_;
};

}  // namespace paceline
