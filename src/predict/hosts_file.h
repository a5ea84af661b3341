// Hosts and the network between them, as a .toml file describes them, and the file that keeps one
// host's roof.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "predict/prediction.h"

namespace paceline {

/// The measured traffic from one host to another, by their indices among the hosts.
struct HostPair {
  SimulatedPair link = {};
  // No prediction uses the fields below.
  double round_trip_s = 0;   // usual round trip of a small message
  double clock_ahead_s = 0;  // how far the clock of `to` is ahead of `from`'s
  double clock_doubt_s = 0;  // uncertainty of clock_ahead_s
  std::string missing = {};  // why nothing was measured; empty: something was
};

struct DescribedHosts {
  std::vector<PredictedHost> hosts;
  std::vector<HostPair> pairs = {};  // pairs of hosts about which more is known than their links
};

/// Reads a text such as
///     [[host]]
///     count = 4                     # hosts that are alike; default 1
///     name = "node"
///     cores = 32
///     gflops = 2000                 # products on all cores
///     gbytes_per_s = 180            # memory, all cores
///     thread_gbytes_per_s = 20      # memory, one core
///     rule_gbytes_per_s = 120       # memory in update rules, all cores
///     thread_rule_gbytes_per_s = 15 # the same, one core
///     cached_rule_gbytes_per_s = 300  # update rules over arrays that caches hold, all cores
///     tcp_send_gbytes_per_s = 5     # of one core; also tcp_receive_gbytes_per_s
///     core_tcp_send_gbytes_per_s = 6  # between two tasks on one core; also core_tcp_receive_…
///     cipher_gbytes_per_s = 8       # of one core, where links are encrypted
///     tcp_message_us = 8            # of a core at each end of a small message; also
///     shm_message_us tcp_trip_us = 40              # until it is handled; also shm_trip_us
///     core_trip_ns = 50             # the time of a word from one core to another
///     devices = 2                   # workers that fit; default 1
///     gbps = 1                      # of its link, each way; default: no limit
///     receive_gbps = 0.5            # of what it receives; default: as gbps
///     latency_us = 30               # one way, to the switch
///     others_percent = 40           # other programs had the cores for 40% of the measuring time
///     [host.device]                 # its devices, such as GPUs, if they have a roof of their own
///     name = "Some GPU"             # as the driver gives it
///     gflops = 10000                # products of float32
///     gbytes_per_s = 1000           # its memory
///     launch_us = 5                 # of one of many kernels
///     upload_gbytes_per_s = 20      # from the host's memory; also download_gbytes_per_s
///     [[pair]]                      # from one host to another; default: their links alone
///     from = "node 0"
///     to = "node 1"
///     gbps = 1                      # of all streams together
///     stream_gbps = 0.4             # of one stream; default: as gbps
///     latency_us = 60               # one way
/// Throws kUsage, naming the place in `source` and the field. The section [host.device] describes
/// the host of the [[host]] before it, and needs all of its fields.
DescribedHosts parse_hosts(std::string_view text, const std::string& source);
/// Reads that text from a file. Throws kUsage also if the file cannot be read.
DescribedHosts read_hosts(const std::string& path);
/// Returns a text for parse_hosts that begins with the lines of `comment`, each behind a "#".
std::string hosts_file_text(const DescribedHosts& all, std::span<const std::string> comment);

/// A host's numbers, by the names that a hosts file gives them. numbers_of leaves out numbers that
/// are not known, and host_of ignores names that a hosts file does not have.
using HostNumbers = std::vector<std::pair<std::string, double>>;
HostNumbers numbers_of(const PredictedHost& host);
PredictedHost host_of(const HostNumbers& numbers);

/// Returns words such as "while other programs had the cores for 40% of the time".
std::string beside_others(double share);

/// roof_file_text returns what `paceline roof --out` writes; read_roof_file reads it for --roof.
/// The latter throws kUsage if the file cannot be read, or lacks gflops or gbytes_per_s.
std::string roof_file_text(const PredictedHost& host);
PredictedHost read_roof_file(const std::string& path);

}  // namespace paceline
