// Emulated hosts for the tasks that a launcher starts.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// Hosts as --lab-hosts and its companions describe them.
struct LabOptions {
  int hosts = 0;        // 0: the tasks run on this machine as it is
  double gbps = 1;      // the rate of each host's link, each way
  double delay_ms = 0;  // of a packet from a host to the switch
  /// The host of each task, by its index.
  std::vector<int> ps = {}, workers = {};

  bool asked() const { return hosts > 0; }
};

/// A description of which host runs which tasks: the hosts in their order, separated by '/', each
/// with its parameter servers and its number of workers: "ps+2/2/2", "2ps/4", "ps/ps/1/1". Tasks
/// are numbered in the order of the hosts. Throws kInvalidArgument.
LabOptions parse_lab_place(const std::string& text);

/// Spreads tasks over the hosts, as spread_tasks(hosts, …) does (launch/placement.h).
void spread_tasks(LabOptions& lab, int ps, int workers);

/// "Emulated hosts, with links of 1 Gbit/s:", and a line for each: its address and its tasks.
std::string lab_text(const LabOptions& lab);

/// The address of a host of a lab, without a port.
std::string lab_address(int host);

}  // namespace paceline
