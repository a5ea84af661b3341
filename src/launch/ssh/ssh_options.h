// The hosts on which a launcher starts tasks over ssh, and how.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/placement.h"

namespace paceline {

/// A host as the user names it.
struct SshHost {
  std::string user = {};  // empty: ssh chooses
  // The name by which ssh and the other tasks reach it, without brackets.
  std::string name;
  int room = 0;  // the workers that fit; 0: any number
  /// "user@name", as ssh takes it.
  std::string destination() const { return user.empty() ? name : user + "@" + name; }
  bool operator==(const SshHost&) const = default;
};

struct SshOptions {
  std::vector<SshHost> hosts = {};  // none: all tasks are on this machine
  Placement placement = {};
  std::string program = "ssh";  // ssh with its options, as a shell reads them: "ssh -p 2222 -i key"
  std::string paceline = {};    // the path of the command `paceline` on each host
  std::string folder = {};      // the working folder of the tasks
  std::vector<std::string> environment = {};  // "NAME=VALUE", any byte but NUL
  int first_port = 0;  // the first port on each host; 0: the system chooses ports
  // A host, or the launcher, is given up after this time without a sign of life.
  Duration silence = std::chrono::seconds(30);
  /// The time that tasks without a launcher have to end.
  Duration end_within = std::chrono::seconds(12);

  bool asked() const { return !hosts.empty(); }
  bool several() const { return hosts.size() > 1; }
};

/// Reads a list such as "a,user@b:4,[fe80::1]", in which a number says how many workers fit on a
/// host. Throws kInvalidArgument for a name that ssh would read as something else, for a name that
/// appears twice, and, in a list of several hosts, for a name that means another host on each of
/// them (localhost).
std::vector<SshHost> parse_ssh_hosts(const std::string& text);
/// Throws what parse_ssh_hosts throws.
void check_ssh_hosts(const std::vector<SshHost>& hosts);

/// Spreads tasks over the hosts, and throws, as spread_tasks does.
Placement place_on_hosts(const std::vector<SshHost>& hosts, int ps, int workers);

}  // namespace paceline
