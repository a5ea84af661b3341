#include "base/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "paceline/error.h"

namespace paceline {
namespace {

[[noreturn]] void reject(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              "'" + text + "' is no address: " + why + " (host:port, or [host]:port for IPv6)");
}

std::uint16_t parse_port(const std::string& text, const std::string& digits) {
  unsigned port = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, port);
  if (digits.empty()) reject(text, "the port is missing");
  const bool octal = digits.size() > 1 && digits.starts_with('0');
  if (error != std::errc() || stop != end || port > 65535 || octal)
    reject(text, "'" + digits + "' is no port, which is 0 to 65535");
  return std::uint16_t(port);
}

bool is_ipv4(const std::string& host) {
  in_addr unused;
  return ::inet_pton(AF_INET, host.c_str(), &unused) == 1;
}

bool is_ipv6(const std::string& host) {
  in6_addr unused;
  return ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &unused) == 1;
}

// True if the last part of the host is a number. No host name ends in a number, so the text must
// then be an IPv4 address of four decimal numbers: the system would read 010.0.0.1 as 8.0.0.1, and
// 10.1 as 10.0.0.1.
bool ends_in_number(const std::string& host) {
  std::size_t end = host.size();
  while (end > 0 && host[end - 1] == '.') --end;
  const std::string last = host.substr(0, end).substr(host.rfind('.', end - 1) + 1);
  const bool hexadecimal = last.starts_with("0x") || last.starts_with("0X");
  return !last.empty() &&
         (hexadecimal || last.find_first_not_of("0123456789") == std::string::npos);
}

}  // namespace

Address parse_address(const std::string& text) {
  if (const std::size_t scheme = text.find("://"); scheme != std::string::npos)
    reject(text, "leave out the scheme '" + text.substr(0, scheme + 3) + "'");
  const bool bracketed = text.starts_with('[');
  const std::size_t close = text.find(']');
  if (bracketed && close == std::string::npos) reject(text, "']' is missing");
  const std::size_t colon = bracketed ? close + 1 : text.find(':');
  if (colon >= text.size()) reject(text, "the port is missing");
  if (text[colon] != ':') reject(text, "a port must follow ']'");
  if (!bracketed && text.find(':', colon + 1) != std::string::npos)
    reject(text, "it has more than one ':'");
  const std::string host = bracketed ? text.substr(1, close - 1) : text.substr(0, colon);
  if (host.empty()) reject(text, "the host is missing");
  if (host.find_first_of(" \t\n/@,;[]") != std::string::npos)
    reject(text, "'" + host + "' is no host");
  if (bracketed && !is_ipv6(host)) reject(text, "'" + host + "' is no IPv6 address");
  if (!bracketed && ends_in_number(host) && !is_ipv4(host))
    reject(text, "'" + host + "' is no IPv4 address, which is four decimal numbers up to 255");
  return {host, parse_port(text, text.substr(colon + 1))};
}

std::string text_of(const Address& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string host_of(const std::string& address) {
  const bool bare_ipv6 =
      !address.starts_with('[') && std::count(address.begin(), address.end(), ':') > 1;
  if (bare_ipv6 || address.find(':') == std::string::npos) return address;
  return parse_address(address).host;
}

bool is_loopback(const std::string& address) {
  const std::string host = host_of(address);
  return host == "localhost" || host == "::1" || (is_ipv4(host) && host.starts_with("127."));
}

bool is_within_host(const std::string& near, const std::string& far) {
  return is_loopback(far) || host_of(near) == host_of(far);
}

}  // namespace paceline
