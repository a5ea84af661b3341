// Addresses of tasks: "host:port", with IPv6 hosts in brackets.
#pragma once

#include <cstdint>
#include <string>

namespace paceline {

struct Address {
  std::string host;  // without brackets
  std::uint16_t port = 0;

  bool operator==(const Address&) const = default;
};

/// Reads a text such as "worker3:2222", "10.0.0.7:2222" or "[::1]:0". Throws kInvalidArgument
/// naming the text.
Address parse_address(const std::string& text);

/// Returns the text that parse_address reads.
std::string text_of(const Address& address);

/// Returns the host of "host:port", or of a text that is a host alone.
std::string host_of(const std::string& address);

/// True when `address` ("host:port", or a host alone) is this machine and no other can reach it:
/// localhost, 127.x.x.x, ::1. Only the text counts; no name is looked up.
bool is_loopback(const std::string& address);

/// True when a connection between these addresses (as in is_loopback) never leaves the machine.
bool is_within_host(const std::string& near, const std::string& far);

}  // namespace paceline
