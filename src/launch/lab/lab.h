// A lab: emulated hosts on this machine, which links of a limited rate join to a switch. Each host
// is a network namespace; processors, memory and files are those of this machine.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// The links between a lab's hosts and its switch.
struct LabLinks {
  double gbps = 1;  // each way
  // The delay of each packet from a host to the switch; it needs a kernel with netem.
  double delay_ms = 0;
};

/// The constructor makes the hosts, and the destructor removes them. The hosts of a process that
/// was killed are removed by the next lab. Two labs never see each other.
class Lab {
 public:
  /// Throws kUnavailable if the user is not root, or if the tools (ip and tc, of iproute2) or the
  /// kernel lack something.
  Lab(int hosts, const LabLinks& links);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  int hosts() const { return hosts_; }
  /// Returns the command line that runs `words` on the host.
  std::vector<std::string> on_host(int host, const std::vector<std::string>& words) const;

  /// Changes the rate of the host's link, in both directions.
  void set_rate(int host, double gbps);
  /// Drops this share of the packets to and from the host, at random: 0.01 is one in a hundred, 0
  /// none. Throws kUnavailable if the program nft, of nftables, or its part of the kernel is
  /// missing.
  void lose(int host, double share);
  /// Unplugs the host: no packet passes any more, and no task is told of it.
  void cut(int host);
  /// Plugs the host in again.
  void mend(int host);
  /// Cuts these two hosts off from each other, while all other hosts reach both. No task is told of
  /// it.
  void part(int host, int other);
  /// Lets these two hosts reach each other again.
  void reunite(int host, int other);

 private:
  void make(const LabLinks& links);
  void remove();
  std::string host_name(int host) const;
  std::string switch_name() const;
  void isolate(int host, bool isolated);

  const int hosts_;
  const std::string prefix_;  // of the names of its namespaces
  std::string ip_;            // the path of the program ip
};

/// Returns the reason why no lab can be made here; empty if one can.
std::string why_no_lab();

}  // namespace paceline
