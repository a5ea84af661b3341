// A lab: emulated hosts on this machine, joined by a switch over links of a limited rate. Each is a
// network namespace; processors, memory and files are those of this machine.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// The links of a lab's hosts to its switch.
struct LabLinks {
  double gbps = 1;      // each way
  double delay_ms = 0;  // of each packet from a host to the switch; needs a kernel with netem
};

/// The constructor makes the hosts, and the destructor removes them. What a lab of a process that
/// was killed has left is removed by the next one. Two labs never see each other.
class Lab {
 public:
  /// Throws kUnavailable when the user is not root, or the tools (ip and tc, of iproute2) or the
  /// kernel lack something.
  Lab(int hosts, const LabLinks& links);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  int hosts() const { return hosts_; }
  /// Returns the words that run `words` on the host.
  std::vector<std::string> on_host(int host, const std::vector<std::string>& words) const;

  /// Changes the rate of the host's link, each way.
  void set_rate(int host, double gbps);
  /// Loses this share of the packets to and from the host, at random: 0.01 is one in a hundred, 0
  /// none. Throws kUnavailable without the program nft, of nftables, or where its kernel part
  /// lacks.
  void lose(int host, double share);
  /// Unplugs the host: no packet passes any more, and no task is told.
  void cut(int host);
  /// Plugs it in again.
  void mend(int host);
  /// Cuts these two hosts off from each other, while all others reach both. Nobody is told.
  void part(int host, int other);
  /// Ends that.
  void reunite(int host, int other);

 private:
  void make(const LabLinks& links);
  void remove();
  std::string host_name(int host) const;
  std::string switch_name() const;
  void isolate(int host, bool isolated);

  const int hosts_;
  const std::string prefix_;  // of the names of its namespaces
  std::string ip_;            // the path of that program
};

/// Returns why no lab can be made here; empty when one can.
std::string why_no_lab();

}  // namespace paceline
