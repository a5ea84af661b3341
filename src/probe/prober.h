// Measures hosts, and the network between each two of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/link.h"
#include "predict/hosts_file.h"
#include "probe/pair_meter.h"
#include "probe/probe_call.h"

namespace paceline {

/// A host that is to be measured.
struct ProbedHost {
  std::string name;
  std::string address;  // the address at which it is served; empty for this host
};

struct Probing {
  std::vector<ProbedHost> hosts;  // this host is the first, if it is one of them
  Duration each{};                // of each measurement of a rate
  std::shared_ptr<const LinkSecurity> security;
  std::function<PredictedHost()> roof;          // measures this host
  std::function<void(const std::string&)> say;  // what is under way, line by line
};

/// What was found. The figures of a pair are measured from its first host.
struct ProbedPair {
  int first = 0, second = 0;
  std::optional<PairFigures> figures;
  std::string missing = {};  // why there are none
};
struct Probed {
  std::vector<PredictedHost> hosts;  // with their roofs
  // For each host: why its roof is not known; empty if it is.
  std::vector<std::string> missing = {};
  std::vector<ProbedPair> pairs = {};

  bool is_whole() const;
};

class Prober {
 public:
  explicit Prober(Probing probing);
  ~Prober();

  /// Returns "3 hosts and the 3 pairs of them".
  std::string subject() const;
  /// Return the longest and the usual duration of the whole measurement.
  Duration longest() const;
  Duration usual() const;

  /// Calls all hosts, and then takes one measurement after another, so that they do not disturb
  /// each other. Before any measurement, throws kUnavailable that names all hosts which cannot be
  /// called, and why.
  Probed measure();

 private:
  struct Server {
    std::unique_ptr<ProbeCall> call;  // null: this host
    std::string lost;                 // why it is not asked any more
  };
  void call_all();
  void measure_roof(std::size_t host, Probed& probed);
  void measure_pair(ProbedPair& pair);
  PairFigures figures_of(const ProbedPair& pair);
  std::size_t pair_count() const;

  const Probing probing_;
  const std::uint64_t session_;
  std::unique_ptr<Link> link_;
  std::vector<Server> servers_;
};

/// Returns the hosts and pairs in the form of a hosts file. In each direction, the rate of a host's
/// link is that of the fastest pair that the host is in.
DescribedHosts described(const Probed& probed);
/// Returns a table with a line for each direction of each pair: rates, round trips, clocks.
std::string probed_text(const Probed& probed);

}  // namespace paceline
