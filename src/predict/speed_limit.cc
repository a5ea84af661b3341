#include "predict/speed_limit.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/row_count.h"
#include "params/protocol/placement.h"
#include "params/variable_arrays.h"
#include "predict/simulation/shared_variables.h"
#include "predict/step_cost.h"

namespace paceline {
namespace {

/// The bytes that a step of every worker moves over the links.
struct StepBytes {
  explicit StepBytes(std::size_t hosts) : out(hosts), in(hosts) {}
  std::vector<double> out, in;                    // by host
  std::map<std::pair<int, int>, double> between;  // from one host to another

  void move(int from, int to, double bytes) {
    out[std::size_t(from)] += bytes;
    in[std::size_t(to)] += bytes;
    between[{from, to}] += bytes;
  }
};

double given_bytes(const SimulatedStep& shared, VariableId v) {
  const StepVariable& use = shared.variables[std::size_t(v)];
  return use.updated ? touched_bytes(shared.specs[std::size_t(v)], use.most_rows) : 0;
}

/// The part of the bytes of float32 that travel.
double part_of_bytes(const ContributionForm& form) {
  constexpr std::size_t kMany = std::size_t{1} << 20;
  return double(travelling_bytes(kMany, form)) / kMany;
}

StepBytes with_ps(const SimulatedJob& job, const SimulatedStep& shared) {
  const SimulatedCluster& cluster = job.cluster;
  StepBytes bytes(cluster.hosts.size());
  const double given = part_of_bytes(job.wire.numbers),
               values = part_of_bytes(job.wire.of_values());
  for (const Piece& piece : place_variables(shared.specs, int(cluster.ps.size()))) {
    const VariableSpec& spec = shared.specs[std::size_t(piece.variable)];
    const double each =
        given_bytes(shared, piece.variable) * double(piece.rows) / double(row_count(spec.shape));
    const int ps = cluster.ps[std::size_t(piece.ps)];
    for (const int worker : cluster.workers) {
      if (worker == ps) continue;
      bytes.move(ps, worker, each * values);
      bytes.move(worker, ps, each * given);
    }
  }
  return bytes;
}

StepBytes in_a_ring(const SimulatedJob& job, const SimulatedStep& shared) {
  const SimulatedCluster& cluster = job.cluster;
  StepBytes bytes(cluster.hosts.size());
  double all = 0;
  for (std::size_t v = 0; v < shared.specs.size(); ++v) {
    all += given_bytes(shared, VariableId(v));
  }
  const std::size_t workers = cluster.workers.size();
  const double each = 2 * all * double(workers - 1) / double(workers);
  for (std::size_t w = 0; w < workers; ++w) {
    const int from = cluster.workers[w], to = cluster.workers[(w + 1) % workers];
    if (from != to) bytes.move(from, to, each);
  }
  return bytes;
}

// A worker on the host of the only ps sends nothing over a link.
bool is_remote(const SimulatedCluster& cluster, int host) {
  return std::ranges::any_of(cluster.ps, [&](int ps) { return ps != host; });
}

// Who waits for others is not faster than the slowest of them, or than as many as a round needs.
std::vector<double> own_rates(const SimulatedJob& job, double device) {
  std::vector<double> rates(job.cluster.workers.size());
  for (std::size_t w = 0; w < rates.size(); ++w) {
    rates[w] = 1 / (device * job.cluster.slowness_of(int(w)));
  }
  if (!kind_of(job).waits_for_others(job.strategy)) return rates;
  std::vector<double> fastest = rates;
  std::ranges::sort(fastest, std::greater());
  const auto replicas = std::size_t(job.strategy.replicas);
  const std::size_t needed = replicas > 0 ? replicas : rates.size();
  const double most = fastest[std::min(needed, rates.size()) - 1];
  for (double& rate : rates) rate = std::min(rate, most);
  return rates;
}

/// What links allow, in steps per second of each worker that they serve, who share them evenly.
struct LinkLimits {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double all = kNone;            // every worker's steps pass these
  std::vector<double> of_hosts;  // of the workers of each host alone
};

LinkLimits limits_of_links(const SimulatedCluster& cluster, double every, const StepBytes& bytes,
                           bool together) {
  LinkLimits limits{.of_hosts = std::vector<double>(cluster.hosts.size(), LinkLimits::kNone)};
  std::vector<bool> serves(cluster.hosts.size());
  for (const int host : cluster.ps) serves[std::size_t(host)] = true;
  const auto take = [&](double& limit, double rate, double moved) {
    if (rate > 0 && moved > 0) limit = std::min(limit, rate * every / moved);
  };
  for (std::size_t host = 0; host < cluster.hosts.size(); ++host) {
    double& limit = together || serves[host] ? limits.all : limits.of_hosts[host];
    take(limit, cluster.hosts[host].link_bytes_per_s, bytes.out[host]);
    take(limit, cluster.hosts[host].receives_per_s(), bytes.in[host]);
  }
  for (const SimulatedPair& pair : cluster.pairs) {
    const auto found = bytes.between.find({pair.from, pair.to});
    if (found == bytes.between.end()) continue;
    const auto from = std::size_t(pair.from), to = std::size_t(pair.to);
    if (together) {
      take(limits.all, pair.bytes_per_s, found->second);
    } else if (serves[from] != serves[to]) {  // else some of both hosts' workers do
      take(limits.of_hosts[serves[from] ? to : from], pair.bytes_per_s, found->second);
    }
  }
  return limits;
}

// Whoever needs a link shares it evenly with the others. Where nobody waits for others, a worker
// behind a slow link holds up no other.
double links_allow(const SimulatedJob& job, double device, double every, const StepBytes& bytes,
                   bool ring) {
  const SimulatedCluster& cluster = job.cluster;
  const bool together = ring || kind_of(job).waits_for_others(job.strategy);
  const LinkLimits limits = limits_of_links(cluster, every, bytes, together);
  const std::vector<double> own = own_rates(job, device);
  double all = 0, over_links = 0;
  int linked = 0;
  for (std::size_t w = 0; w < own.size(); ++w) {
    const int host = cluster.workers[w];
    if (!ring && !is_remote(cluster, host)) {
      all += own[w];
      continue;
    }
    ++linked;
    over_links += std::min(
        {own[w], limits.of_hosts[std::size_t(host)], together ? limits.all : LinkLimits::kNone});
  }
  return all + (linked > 0 ? std::min(over_links, linked * limits.all) : 0);
}

/// The rate of rules on the slowest machine of these hosts; 0: rules take no time there.
double rate_of_rules(const SimulatedCluster& cluster, const std::vector<int>& hosts) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const int host : hosts) {
    const auto machine = std::size_t(cluster.hosts[std::size_t(host)].machine);
    slowest = std::min(slowest, cluster.machines[machine].rate_of_rules());
  }
  return hosts.empty() ? 0 : slowest;
}

// Each worker applies the rules of the dense variables, and a round those of the sparse ones once.
template <typename Seconds>
double hybrid_limit(const SimulatedJob& job, double device, Seconds&& seconds) {
  const HybridPlaces places(job.step->specs);
  const SimulatedStep sparse = part_of_step(*job.step, places, true),
                      dense = part_of_step(*job.step, places, false);
  const auto every = double(job.accumulate);
  StepBytes bytes = with_ps(job, sparse);
  const StepBytes reduced = in_a_ring(job, dense);
  for (const auto& [hosts, moved] : reduced.between) bytes.move(hosts.first, hosts.second, moved);
  const double step = device + seconds(dense.rule_bytes()) / every;
  return links_allow(job, step, every, bytes, true);
}

}  // namespace

double speed_limit(const SimulatedJob& job) {
  const SimulatedCluster& cluster = job.cluster;
  const double workers = double(cluster.workers.size());
  const auto seconds_at = [](double bytes, double rate) { return rate > 0 ? bytes / rate : 0; };
  const auto seconds = [&, rate = rate_of_rules(cluster, cluster.workers)](double bytes) {
    return seconds_at(bytes, rate);
  };
  const auto accumulated = double(job.accumulate);
  double step = job.step->seconds();
  const StrategyKind& kind = kind_of(job);
  const bool local = kind.makes_local_steps, ring = cluster.ps.empty() && workers > 1;
  const bool alone = cluster.ps.empty() && !ring;
  if (alone || local) step += seconds(job.step->rule_bytes()) / accumulated;
  if (alone) return workers / step;
  if (kind.splits_variables()) return hybrid_limit(job, step, seconds);
  const SimulatedStep outer = local ? outer_step(job) : SimulatedStep{};
  const SimulatedStep& shared = local ? outer : *job.step;
  const double every = accumulated * (local ? double(job.strategy.local_steps) : 1);
  if (ring) step += seconds(shared.rule_bytes()) / every;
  const StepBytes bytes = ring ? in_a_ring(job, shared) : with_ps(job, shared);
  double limit = links_allow(job, step, every, bytes, ring);
  // In rounds the workers share an update.
  const bool rounds = kind.in_rounds(job.strategy);
  const double ps_machines =
      std::max(1.0, double(std::min(cluster.ps.size(), cluster.machines.size())));
  const double rules = seconds_at(shared.rule_bytes(), rate_of_rules(cluster, cluster.ps)) / every;
  if (!ring && rules > 0) limit = std::min(limit, (rounds ? workers : 1) * ps_machines / rules);
  return limit;
}

}  // namespace paceline
