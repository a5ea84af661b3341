// Emulated hosts for the tasks that a launcher starts.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// The emulated hosts, as --lab-hosts and its companions describe them.
struct LabOptions {
  int hosts = 0;        // 0: no hosts are emulated, and the tasks run on this machine as usual
  double gbps = 1;      // the rate of each host's link, in both directions
  double delay_ms = 0;  // the delay of a packet from a host to the switch
  /// The host of each task, by its index.
  std::vector<int> ps = {}, workers = {};

  bool asked() const { return hosts > 0; }
};

/// Reads which host runs which tasks: the hosts in their order, separated by '/', each with its
/// parameter servers and its number of workers: "ps+2/2/2", "2ps/4", "ps/ps/1/1". Tasks are
/// numbered in the order of the hosts. Throws kInvalidArgument.
LabOptions parse_lab_place(const std::string& text);

/// Spreads tasks over the hosts, as spread_tasks(hosts, …) does (launch/placement.h).
void spread_tasks(LabOptions& lab, int ps, int workers);

/// Returns "Emulated hosts, with links of 1 Gbit/s:", and a line for each host with its address and
/// its tasks.
std::string lab_text(const LabOptions& lab);

/// Returns the address of a lab's host, without a port.
std::string lab_address(int host);

}  // namespace paceline
