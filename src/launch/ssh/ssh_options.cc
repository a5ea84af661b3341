#include "launch/ssh/ssh_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/address.h"
#include "paceline/error.h"

namespace paceline {

namespace {

constexpr int kMostRoom = 1024;

[[noreturn]] void refuse_host(std::string_view text, std::string_view why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("'{}' {}", text, why));
}

// Takes a number such as ":4" off the end. A text with two colons is an IPv6 address without
// brackets.
int taken_room(std::string_view& host, std::string_view text) {
  const std::size_t colon = host.rfind(':');
  const bool bracketed = host.find(']') != host.npos;
  if (colon == host.npos || (bracketed && colon < host.find(']'))) return 0;
  if (!bracketed && host.find(':') != colon) return 0;
  int room = 0;
  const char* const end = host.data() + host.size();
  const auto [stop, status] = std::from_chars(host.data() + colon + 1, end, room);
  if (status != std::errc() || stop != end || room < 1 || room > kMostRoom) {
    refuse_host(text, fmt::format("must be HOST, or HOST:N with the number of workers that fit, "
                                  "from 1 to {} (a port of ssh is --ssh 'ssh -p PORT')",
                                  kMostRoom));
  }
  host = host.substr(0, colon);
  return room;
}

bool is_name_of_host(std::string_view name) {
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-._:%").find(char(c)) != std::string_view::npos;
  });
}

SshHost parse_ssh_host(std::string_view text) {
  SshHost host;
  std::string_view rest = text;
  if (const std::size_t at = rest.rfind('@'); at != rest.npos) {
    host.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    if (host.user.empty() || host.user.front() == '-') refuse_host(text, "has no user before @");
  }
  host.room = taken_room(rest, text);
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  host.name = rest;
  return host;
}

}  // namespace

std::vector<SshHost> parse_ssh_hosts(const std::string& text) {
  std::vector<SshHost> hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    hosts.push_back(parse_ssh_host(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  check_ssh_hosts(hosts);
  return hosts;
}

void check_ssh_hosts(const std::vector<SshHost>& hosts) {
  for (const SshHost& host : hosts) {
    if (!is_name_of_host(host.name)) {
      refuse_host(host.name, "is no name or address of a host: give a list such as a,user@b:4");
    }
    if (std::ranges::count(hosts, host.name, &SshHost::name) > 1) {
      refuse_host(host.name,
                  fmt::format("is named twice: {}:N makes room for N workers", host.name));
    }
  }
  const auto here = [](const SshHost& host) { return is_loopback(text_of({host.name, 1})); };
  const auto one = std::ranges::find_if(hosts, here);
  if (one == hosts.end() || std::ranges::all_of(hosts, here)) return;
  refuse_host(one->name,
              "means another host to each host: give the name by which the others reach it");
}

Placement place_on_hosts(const std::vector<SshHost>& hosts, int ps, int workers) {
  std::vector<int> room;
  room.reserve(hosts.size());
  for (const SshHost& host : hosts) room.push_back(host.room == 0 ? workers : host.room);
  return spread_tasks(int(hosts.size()), ps, workers, room);
}

}  // namespace paceline
