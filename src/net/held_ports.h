// Free ports of the loopback, kept for tasks that are about to listen on them.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// Binds `count` sockets of 127.0.0.1 and never listens on them, so that the system gives the ports
/// to nobody else, while a task that listens with SO_REUSEADDR still may. Threads: one at a time.
class HeldPorts {
 public:
  /// Throws kUnavailable when there are not enough ports.
  explicit HeldPorts(int count);
  ~HeldPorts();
  HeldPorts(const HeldPorts&) = delete;
  HeldPorts& operator=(const HeldPorts&) = delete;

  /// The addresses, such as "127.0.0.1:40123".
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  void hold_one();

  std::vector<int> sockets_;
  std::vector<std::string> addresses_;
};

}  // namespace paceline
