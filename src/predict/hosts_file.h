// Hosts and what lies between them, as a .toml file describes them, and the roof of one, as a file
// keeps it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "predict/prediction.h"

namespace paceline {

/// The measured traffic that goes from one host to another, by their places among the hosts.
struct HostPair {
  SimulatedPair link = {};
  // Nothing is predicted by these.
  double round_trip_s = 0;   // the usual one of a small message
  double clock_ahead_s = 0;  // of the clock of `to`, as seen from `from`
  double clock_doubt_s = 0;  // give or take
  std::string missing = {};  // why nothing was measured; empty: it was
};

struct DescribedHosts {
  std::vector<PredictedHost> hosts;
  std::vector<HostPair> pairs = {};  // of hosts between which more is known than their links
};

/// Reads a text such as
///     [[host]]
///     count = 4             # hosts that are alike; default 1
///     name = "node"
///     cores = 32
///     gflops = 2000         # products on all cores
///     gbytes_per_s = 180    # memory, all cores; thread_gbytes_per_s, of one, too
///     rule_gbytes_per_s = 120       # the same of update rules; thread_rule_gbytes_per_s, too
///     tcp_send_gbytes_per_s = 5     # of one core; tcp_receive_gbytes_per_s, too
///     cipher_gbytes_per_s = 8       # of one core, where links are encrypted
///     core_tcp_send_gbytes_per_s = 6         # between tasks on one core; core_tcp_receive_…, too
///     core_trip_ns = 50     # of a word from one core to another
///     devices = 2           # workers that fit; default 1
///     gbps = 1              # of its link, each way; default: no limit
///     receive_gbps = 0.5    # of what it receives; default: as gbps
///     latency_us = 30       # one way, to the switch
///     others_percent = 40   # of the time of measuring it, in which other programs had the cores
///     [[pair]]              # what lies between two hosts, one way; default: their links alone
///     from = "node 0"
///     to = "node 1"
///     gbps = 1              # of all streams together
///     stream_gbps = 0.4     # of one stream; default: as gbps
///     latency_us = 60       # one way
/// Throws kUsage, naming the place in `source`.
DescribedHosts parse_hosts(std::string_view text, const std::string& source);
/// The same of a file. Throws kUsage when it cannot be read.
DescribedHosts read_hosts(const std::string& path);
/// The text that parse_hosts reads, with these lines of comment before it.
std::string hosts_file_text(const DescribedHosts& all, std::span<const std::string> comment);

/// These say what a host can do, by the names of such a file; what is not known is left out. A name
/// that is not known is none of the host's.
using HostNumbers = std::vector<std::pair<std::string, double>>;
HostNumbers numbers_of(const PredictedHost& host);
PredictedHost host_of(const HostNumbers& numbers);

/// Says that something was measured "while other programs had the cores for 40% of the time".
std::string beside_others(double share);

/// The host as `paceline roof --out` writes it, and as --roof reads it. Throws kUsage.
std::string roof_file_text(const PredictedHost& host);
PredictedHost read_roof_file(const std::string& path);

}  // namespace paceline
