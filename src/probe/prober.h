// Measures hosts and what lies between each two of them.
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
  std::string address;  // where it is served; empty: it is this one
};

struct Probing {
  std::vector<ProbedHost> hosts;  // this one, if it is among them, is the first
  Duration each{};                // of each measurement of a rate
  std::shared_ptr<const LinkSecurity> security;
  std::function<PredictedHost()> roof;          // of this host
  std::function<void(const std::string&)> say;  // what is under way, line by line
};

/// The findings. The figures of a pair are those of its first host.
struct ProbedPair {
  int first = 0, second = 0;
  std::optional<PairFigures> figures;
  std::string missing = {};  // why there are none
};
struct Probed {
  std::vector<PredictedHost> hosts;       // with their roofs
  std::vector<std::string> missing = {};  // why the roof of each is not known; empty: it is
  std::vector<ProbedPair> pairs = {};

  bool is_whole() const;
};

class Prober {
 public:
  explicit Prober(Probing probing);
  ~Prober();

  /// "3 hosts and the 3 pairs of them"
  std::string subject() const;
  /// Return the longest and the usual duration of the whole measurement.
  Duration longest() const;
  Duration usual() const;

  /// Calls all hosts, then measures one after the other, so that nothing disturbs it. Throws
  /// kUnavailable with all hosts that cannot be called, and why, before anything is measured.
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

/// Hosts and pairs as a hosts file describes them. The link of a host is the fastest pair that it
/// is in, each way.
DescribedHosts described(const Probed& probed);
/// A table with a line for each pair and way: rates, round trips, clocks.
std::string probed_text(const Probed& probed);

}  // namespace paceline
