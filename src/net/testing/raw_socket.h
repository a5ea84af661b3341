// Sockets of peers that send whatever a test wants.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <span>
#include <string>
#include <string_view>

#include "base/address.h"
#include "net/accept/preamble.h"
#include "net/poll/file_descriptor.h"

namespace paceline {

/// Connects to an IPv4 address, such as "127.0.0.1:2222". Reads give up after a minute.
class RawSocket {
 public:
  explicit RawSocket(const std::string& address)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const Address parsed = parse_address(address);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(parsed.port);
    ::inet_pton(AF_INET, parsed.host.c_str(), &to.sin_addr);
    const timeval patience{60, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  void write(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// True if the other side closes without having sent anything.
  bool is_closed_by_peer() {
    char byte;
    const ssize_t got = ::recv(fd_.get(), &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  void close() { fd_ = FileDescriptor(); }
  /// Returns the descriptor, which the caller now owns.
  FileDescriptor release() { return std::move(fd_); }

 private:
  FileDescriptor fd_;
};

/// A peer that greets correctly, and then misbehaves.
struct RawTcpPeer {
  explicit RawTcpPeer(const std::string& address) : data(address), control(address) {
    const Preamble::Token token = random_token();
    data.write(encode(Preamble{SocketRole::kData, token}));
    control.write(encode(Preamble{SocketRole::kControl, token}));
  }
  RawSocket data, control;
};

}  // namespace paceline
