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
  std::string name;       // by which ssh and the other tasks reach it; without brackets
  int room = 0;           // the workers that fit; 0: any number
  /// "user@name", as ssh takes it.
  std::string destination() const { return user.empty() ? name : user + "@" + name; }
  bool operator==(const SshHost&) const = default;
};

struct SshOptions {
  std::vector<SshHost> hosts = {};  // none: all tasks are on this machine
  Placement placement = {};
  std::string program = "ssh";                     // a shell's words: "ssh -p 2222 -i key"
  std::string paceline = {};                       // the path of the command paceline, on each host
  std::string folder = {};                         // the working folder of the tasks
  std::vector<std::string> environment = {};       // "NAME=VALUE", any byte but NUL
  int first_port = 0;                              // of each host; 0: the system chooses ports
  Duration silence = std::chrono::seconds(30);     // after which a host or the launcher is given up
  Duration end_within = std::chrono::seconds(12);  // tasks whose launcher was lost

  bool asked() const { return !hosts.empty(); }
  bool several() const { return hosts.size() > 1; }
};

/// Reads a list such as "a,user@b:4,[fe80::1]": the number is that of the workers that fit. Throws
/// kInvalidArgument for a name that ssh would take for something else, for one that comes twice,
/// and for one that means another host on each host (localhost) beside others.
std::vector<SshHost> parse_ssh_hosts(const std::string& text);
/// Throws what parse_ssh_hosts throws.
void check_ssh_hosts(const std::vector<SshHost>& hosts);

/// Spreads tasks over the hosts as spread_tasks does, which throws.
Placement place_on_hosts(const std::vector<SshHost>& hosts, int ps, int workers);

}  // namespace paceline
