#include "predict/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/printed.h"
#include "base/row_count.h"
#include "paceline/error.h"
#include "params/protocol/placement.h"
#include "params/variable_arrays.h"
#include "predict/memory_passes.h"
#include "predict/simulation/coarse_step.h"
#include "predict/simulation/shared_variables.h"
#include "predict/simulation/simulate.h"
#include "predict/simulation/simulated_job.h"
#include "predict/step_cost.h"

namespace paceline {
namespace {

// About the 10th and the 90th percentile of measured ÷ predicted, over the rows of
// bench/predictions.csv. The limits with few rows (a straggler, another system's transport, local
// steps) get the interval of a similar limit.
SpeedInterval usual_interval(Limit limit) {
  switch (limit) {
    case Limit::kAlone:
      return {0.97, 1.02};
    case Limit::kDevices:
    case Limit::kStraggler:
    case Limit::kInput:
      return {0.97, 1.025};
    case Limit::kLink:
    case Limit::kTransport:
      return {0.94, 1.06};
    case Limit::kAnswers:
    case Limit::kOthers:
    case Limit::kExchanges:
      return {0.93, 1.06};
    case Limit::kRules:
    case Limit::kMemory:
      return {0.92, 1.08};
    case Limit::kCores:
      return {0.91, 1.10};
    default:  // kernels on the cores of hosts
      return {0.86, 1.09};
  }
}

}  // namespace

SpeedInterval interval_of(Limit limit, KernelsFrom kernels) {
  const SpeedInterval usual = usual_interval(limit);
  const bool of_kernels = limit == Limit::kAlone || limit == Limit::kCores ||
                          limit == Limit::kKernels || limit == Limit::kDevices;
  switch (kernels) {
    case KernelsFrom::kSteps:
      return usual;
    case KernelsFrom::kBesideOthers:
      return of_kernels ? SpeedInterval{0.85, 1.5} : usual;
    case KernelsFrom::kCosts:
      // Steps of `mlp`, `mlp --hidden 512 --batch 64`, `ptb`, `cifar10` and `resnet --depth 20` on
      // one and on two threads of an Intel Xeon reached 0.83 to 1.62 times the predicted speed;
      // other models reached as little as 1/16 of it.
      return {1.0 / 16, of_kernels ? 1.62 : usual.high};
  }
  return usual;
}

namespace {

// The most steps a second that devices, links and memory allow, whatever the protocol.

/// Counts each device's own time for a step, the bytes that pass each host's link in each
/// direction, and the rules' passes over each machine's memory. Everything else takes no time.
double speed_limit(const SimulatedJob& job);

/// The bytes that hosts send and receive while every worker makes one contribution.
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

/// The bytes that travel, divided by the bytes of the same numbers as float32.
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

// The steps per second of each worker if links took no time. A worker that waits for all others is
// as slow as the slowest. In rounds of fewer contributions, it is as slow as the slowest worker
// that a round needs.
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

/// The most steps per second that links allow each worker. The workers that a link serves share it
/// evenly.
struct LinkLimits {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double all = kNone;            // the limit for every worker
  std::vector<double> of_hosts;  // the limits for the workers of one host, by host
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
    } else if (serves[from] != serves[to]) {  // only some workers of both hosts use this link
      take(limits.of_hosts[serves[from] ? to : from], pair.bytes_per_s, found->second);
    }
  }
  return limits;
}

// Returns the steps per second of all workers together that devices and links allow. The workers
// that need a link share it evenly. If no worker waits for others, a worker behind a slow link
// delays only itself.
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

/// The rate of rules on the slowest machine of these hosts; 0 if there are no hosts, or if rules
/// take no time.
double rate_of_rules(const SimulatedCluster& cluster, const std::vector<int>& hosts) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const int host : hosts) {
    const auto machine = std::size_t(cluster.hosts[std::size_t(host)].machine);
    slowest = std::min(slowest, cluster.machines[machine].rate_of_rules());
  }
  return hosts.empty() ? 0 : slowest;
}

// Each worker applies the rules of dense variables. The rules of sparse variables, which the
// parameter servers apply once a round, are not counted.
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
  // In rounds, all workers contribute to one update.
  const bool rounds = kind.in_rounds(job.strategy);
  const double ps_machines =
      std::max(1.0, double(std::min(cluster.ps.size(), cluster.machines.size())));
  const double rules = seconds_at(shared.rule_bytes(), rate_of_rules(cluster, cluster.ps)) / every;
  if (!ring && rules > 0) limit = std::min(limit, (rounds ? workers : 1) * ps_machines / rules);
  return limit;
}

// Says what holds a simulated job back.

struct NamedLimit {
  Limit kind = Limit::kAnswers;
  std::string words;
};

/// Names one cause, such as "ps:0's link carries 118 MB/s; 8 workers ask for 166".
NamedLimit limit_in_words(const PredictedJob& hosts, const SimulatedJob& job,
                          const SimulatedSpeed& speed);

constexpr double kUsedUp = 0.88;  // of the available rate

class JobLimits {
 public:
  JobLimits(const PredictedJob& hosts, const SimulatedJob& job, const SimulatedSpeed& speed)
      : hosts_(hosts), job_(job), speed_(speed) {}

  NamedLimit found() const {
    using enum Limit;
    const Limit device_kind = job_.step->threads > 0 ? kKernels : kDevices;
    const Part parts[] = {{kLink, &JobLimits::link},           {kStraggler, &JobLimits::straggler},
                          {device_kind, &JobLimits::device},   {kRules, &JobLimits::applying},
                          {kTransport, &JobLimits::transport}, {kMemory, &JobLimits::memory},
                          {kCores, &JobLimits::cores}};
    for (const auto& [kind, text_of] : parts) {
      if (std::string text = (this->*text_of)(); !text.empty()) return {kind, std::move(text)};
    }
    return waiting();
  }

 private:
  struct Part {
    Limit kind;
    std::string (JobLimits::*text_of)() const;
  };
  int workers() const { return int(job_.cluster.workers.size()); }
  double step_ms() const { return 1e3 * workers() / speed_.steps_per_s; }

  std::string owner(std::size_t host) const {
    for (std::size_t ps = 0; ps < job_.cluster.ps.size(); ++ps) {
      if (job_.cluster.ps[ps] == int(host)) return fmt::format("ps:{}'s link", ps);
    }
    return fmt::format("the link of {}", hosts_.hosts[host].name);
  }

  std::string link() const {
    const auto is_full = [](double rate, double moved) {
      return rate > 0 && moved >= kUsedUp * rate;
    };
    for (std::size_t host = 0; host < job_.cluster.hosts.size(); ++host) {
      const SimulatedHost& it = job_.cluster.hosts[host];
      const double sends = it.link_bytes_per_s, receives = it.receives_per_s();
      const double sent = speed_.use.sent[host], received = speed_.use.received[host];
      const bool sends_all = is_full(sends, sent), receives_all = is_full(receives, received);
      if (!sends_all && !receives_all) continue;
      const bool out = sends_all && (!receives_all || sent >= received);
      return full_link(owner(host), out ? sends : receives, out ? sent : received);
    }
    for (std::size_t i = 0; i < job_.cluster.pairs.size(); ++i) {
      const SimulatedPair& pair = job_.cluster.pairs[i];
      if (!is_full(pair.bytes_per_s, speed_.use.carried[i])) continue;
      const auto name = [&](int host) { return hosts_.hosts[std::size_t(host)].name; };
      return full_link(fmt::format("the network from {} to {}", name(pair.from), name(pair.to)),
                       pair.bytes_per_s, speed_.use.carried[i]);
    }
    return {};
  }

  std::string full_link(const std::string& which, double rate, double moved) const {
    const double wanted = moved / speed_.steps_per_s * workers() / job_.step->seconds();
    return fmt::format("{} carries {} MB/s; {} ask{} for {}", which, rounded(rate * 1e-6, 3),
                       counted(workers(), "worker"), workers() == 1 ? "s" : "",
                       rounded(wanted * 1e-6, 3));
  }

  // Names a worker that computes all the time while the others wait for it; empty if there is none.
  std::string straggler() const {
    const double device = job_.step->seconds();
    for (int w = 0; w < workers(); ++w) {
      const double slowness = job_.cluster.slowness_of(w);
      const double busy = speed_.workers[std::size_t(w)] * device * slowness;
      if (slowness == 1 || busy < kUsedUp || speed_.use.device >= kUsedUp) continue;
      return fmt::format(
          "worker:{}, whose steps take {:.3g} times as long as those of the others, "
          "which wait for it",
          w, slowness);
    }
    return {};
  }

  std::string device() const {
    if (speed_.use.device < kUsedUp) return {};
    if (job_.step->threads > 0) {
      return fmt::format("the cores: kernels take {:.0f}% of the time", 100 * speed_.use.device);
    }
    return fmt::format("the devices compute {:.0f}% of the time", 100 * speed_.use.device);
  }

  std::string applying() const {
    for (std::size_t ps = 0; ps < speed_.use.applying.size(); ++ps) {
      if (speed_.use.applying[ps] < kUsedUp) continue;
      const SimulatedStep shared = kind_of(job_).makes_local_steps ? outer_step(job_) : *job_.step;
      const double bytes = std::accumulate(
          shared.variables.begin(), shared.variables.end(), 0.0,
          [](double sum, const StepVariable& each) { return sum + each.rule_bytes; });
      return fmt::format("ps:{} applies rules {:.0f}% of the time: an update passes over {} MB", ps,
                         std::min(100.0, 100 * speed_.use.applying[ps]),
                         rounded(bytes * 1e-6 / double(speed_.use.applying.size()), 3));
    }
    return {};
  }

  std::string transport() const {
    if (job_.costs.stream_bytes_per_s == 0 && job_.costs.serial_message_s == 0) return {};
    const double messages = double(job_.step->specs.size()) * job_.costs.serial_message_s;
    double bytes = 0;
    for (const VariableSpec& spec : job_.step->specs) bytes += 8.0 * double(spec.shape.elements());
    const double rate = 2 * job_.costs.stream_bytes_per_s;  // both directions together
    const double stream = rate > 0 ? bytes / rate : 0;
    if (std::max(messages, stream) < 0.2 * 1e-3 * step_ms()) return {};
    if (messages > stream) {
      return fmt::format("the transport: {} messages a step take {} ms", job_.step->specs.size(),
                         rounded(1e3 * messages, 3));
    }
    return fmt::format("the transport: {} MB a step at {} MB/s take {} ms",
                       rounded(bytes * 1e-6, 3), rounded(rate * 1e-6, 3), rounded(1e3 * stream, 3));
  }

  std::string memory() const {
    for (std::size_t m = 0; m < speed_.use.memory.size(); ++m) {
      if (speed_.use.memory[m] < kUsedUp) continue;
      return fmt::format("the memory moves {:.0f} GB/s, which rules and kernels want",
                         speed_.use.moved[m] * 1e-9);
    }
    return {};
  }

  std::string cores() const {
    for (std::size_t m = 0; m < speed_.use.cores.size(); ++m) {
      if (speed_.use.cores[m] < kUsedUp) continue;
      const double cores = job_.cluster.machines[m].cores;
      const std::string those =
          cores == 1 ? "the core is" : fmt::format("the {:.0f} cores are", cores);
      return fmt::format("{} busy {:.0f}% of the time", those, 100 * speed_.use.cores[m]);
    }
    return {};
  }

  std::string exchanges() const {
    const SimulatedUse& use = speed_.use;
    const double waits = use.values + use.answer + use.others;
    if (waits < use.rules) {
      return fmt::format("kernels take {:.0f}%, rules and exchanges {:.0f}% of the time",
                         100 * use.device, 100 * use.rules);
    }
    const auto steps = double(job_.strategy.local_steps);
    return fmt::format("of each {} ms, in which {} steps are made, workers wait {} for {}",
                       rounded(steps * step_ms(), 3), job_.strategy.local_steps,
                       rounded(steps * step_ms() * waits, 3),
                       job_.strategy.outer_async ? "new values" : "the mean of all");
  }

  // The limit if no resource is fully used: a step is then a chain of actions, each of which waits
  // for the action before it.
  NamedLimit waiting() const {
    const SimulatedUse& use = speed_.use;
    if (workers() == 1 && job_.cluster.ps.empty()) {
      return {Limit::kAlone, fmt::format("kernels take {:.0f}%, rules {:.0f}% of the time",
                                         100 * use.device, 100 * use.rules)};
    }
    if (kind_of(job_).makes_local_steps) return {Limit::kExchanges, exchanges()};
    const double waits = step_ms() * (use.values + use.answer);
    if (use.others > use.values + use.answer) {
      return {Limit::kOthers,
              fmt::format("workers wait {} of {} ms for one another",
                          rounded(use.others * step_ms(), 3), rounded(step_ms(), 3))};
    }
    return {Limit::kAnswers, fmt::format("each step waits {} of {} ms for its "
                                         "contributions to be applied and answered",
                                         rounded(waits, 3), rounded(step_ms(), 3))};
  }

  const PredictedJob& hosts_;
  const SimulatedJob& job_;
  const SimulatedSpeed& speed_;
};

NamedLimit limit_in_words(const PredictedJob& hosts, const SimulatedJob& job,
                          const SimulatedSpeed& speed) {
  return JobLimits(hosts, job, speed).found();
}

// Parameter servers run first on the hosts without devices, and then on the other hosts in order.
std::vector<int> ps_hosts_of(const PredictedJob& job, const JobShape& shape) {
  std::vector<int> order(job.hosts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{},
                           [&](int host) { return job.hosts[std::size_t(host)].devices == 0; });
  std::vector<int> hosts = shape.ps_hosts;
  while (int(hosts.size()) < shape.ps) hosts.push_back(order[hosts.size() % order.size()]);
  return hosts;
}

// Places workers on the hosts in order, no more on a host than it has devices. Begins at the first
// host. If there is a host for every task, begins after the last parameter server, as tasks are
// placed on emulated hosts.
std::vector<int> worker_hosts_of(const PredictedJob& job, const JobShape& shape,
                                 const std::vector<int>& ps_hosts) {
  std::vector<int> hosts = shape.worker_hosts, room;
  std::int64_t devices = 0;
  for (const PredictedHost& host : job.hosts) {
    room.push_back(host.devices);
    devices += host.devices;
  }
  const int all = int(job.hosts.size());
  const bool apart = shape.ps > 0 && all >= shape.ps + shape.workers;
  for (int next = apart ? ps_hosts.back() + 1 : 0; int(hosts.size()) < shape.workers; ++next) {
    if (devices < shape.workers) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[predict] the hosts have devices for {} workers, and not for {}",
                              devices, shape.workers));
    }
    if (room[std::size_t(next % all)]-- > 0) hosts.push_back(next % all);
  }
  return hosts;
}

// Beside other tasks, the passes of rules reach this share of the rate that they reach alone: runs
// of mlp whose workers do not wait for each other fit 0.87 to 0.96.
constexpr double kRulesBesideTasks = 0.91;
// TCP also slows down beside other tasks: runs of mlp and ptb fit 0.87 to 1.0.
constexpr double kTcpBesideTasks = 0.91;

SimulatedCluster cluster_of(const PredictedJob& job, const JobShape& shape) {
  SimulatedCluster cluster;
  const double of_rules = shape.ps + shape.workers > 1 ? kRulesBesideTasks : 1;
  cluster.share_memory = job.share_memory && job.tls != Tls::kAlways;
  cluster.tls = job.tls;
  for (const PredictedHost& host : job.hosts) {
    if (std::size_t(host.machine) >= cluster.machines.size()) {
      cluster.machines.push_back(
          {.cores = host.cores,
           .bytes_per_s = host.bytes_per_s,
           .thread_bytes_per_s = host.thread_bytes_per_s,
           .rule_bytes_per_s = of_rules * host.rule_bytes_per_s,
           .thread_rule_bytes_per_s = of_rules * host.thread_rule_bytes_per_s});
    }
    cluster.hosts.push_back(
        {host.machine, host.link_bytes_per_s, host.latency_s, host.receive_bytes_per_s});
  }
  cluster.pairs = job.pairs;
  cluster.ps = ps_hosts_of(job, shape);
  cluster.workers = worker_hosts_of(job, shape, cluster.ps);
  return cluster;
}

// Rules pass faster over arrays that stay in the caches from one step to the next. Arrays that fill
// up to half of the last level stay entirely; arrays that fill all of it do not stay, because a
// cache keeps what was used last.
double cached_share(double bytes) {
  return std::clamp(2 - 2 * bytes / double(cache_bytes()), 0.0, 1.0);
}

// The parameter servers together have one copy of the variables. If there are none, or if workers
// make local steps, each worker has its own copy.
void use_caches(SimulatedCluster& cluster, const PredictedJob& job, const JobShape& shape,
                const SimulatedStep& step) {
  std::map<int, double> bytes;  // by machine
  const double copy = step.rule_bytes();
  for (const int host : cluster.ps)
    bytes[cluster.hosts[std::size_t(host)].machine] += copy / shape.ps;
  const bool own = shape.ps == 0 || shape.makes_local_steps() || shape.kind().splits_variables();
  for (const int host : cluster.workers) {
    bytes[cluster.hosts[std::size_t(host)].machine] += own ? copy : 0;
  }
  for (const PredictedHost& host : job.hosts) {
    const auto tasks = bytes.extract(host.machine);  // emulated hosts share one machine
    const double share = tasks.empty() ? 0 : cached_share(tasks.mapped());
    if (share == 0) continue;
    SimulatedMachine& machine = cluster.machines[std::size_t(host.machine)];
    const double of_thread = host.cached_rule_bytes_per_s / std::max(1.0, host.cores);
    const auto mix = [&](double& rate, double cached) {
      if (rate > 0 && cached > rate) rate = 1 / (share / cached + (1 - share) / rate);
    };
    mix(machine.rule_bytes_per_s, host.cached_rule_bytes_per_s);
    mix(machine.thread_rule_bytes_per_s, of_thread);
  }
}

/// The tasks of the machine that has the most tasks per core.
struct Crowd {
  double tasks = 1, cores = 1;
  bool alone = true;  // no other machine has tasks

  // Many tasks on few cores drive each other's data out of the caches, and wake up later.
  double slowdown() const {
    constexpr double kOfEachTask = 0.03;  // time lost to each task beyond one per core
    return 1 + kOfEachTask * (std::max(1.0, tasks / cores) - 1);
  }
  // If every core has equally many tasks, drawn at random, a task shares its core with this
  // fraction of the other tasks. So this share of its messages stays within one core.
  double share_within_a_core() const {
    return alone && tasks > cores ? (tasks / cores - 1) / (tasks - 1) : 0;
  }
};

Crowd crowd_of(const SimulatedCluster& cluster) {
  std::map<int, int> tasks;  // by machine
  for (const auto* of : {&cluster.ps, &cluster.workers}) {
    for (const int host : *of) ++tasks[cluster.hosts[std::size_t(host)].machine];
  }
  Crowd most{.tasks = 0};
  for (const auto& [machine, count] : tasks) {
    const double cores = std::max(1.0, cluster.machines[std::size_t(machine)].cores);
    if (count * most.cores > most.tasks * cores) most = {double(count), cores};
  }
  most.alone = tasks.size() == 1;
  return most;
}

// Assumes that every host sends, receives and encrypts as slowly as the slowest host.
TransportCosts costs_of(const PredictedJob& job, const SimulatedCluster& cluster) {
  TransportCosts costs = job.costs;
  const Crowd crowd = crowd_of(cluster);
  const double within = crowd.share_within_a_core();
  const auto slowest = [&](double PredictedHost::*rate, double PredictedHost::*core_rate,
                           double& s_per_byte) {
    const PredictedHost& host = *std::ranges::min_element(job.hosts, {}, rate);
    if (host.*rate == 0) return;
    const double of_core = host.*core_rate > 0 ? host.*core_rate : host.*rate;
    s_per_byte = ((1 - within) / host.*rate + within / of_core) / kTcpBesideTasks;
  };
  slowest(&PredictedHost::tcp_send_bytes_per_s, &PredictedHost::core_tcp_send_bytes_per_s,
          costs.send_s_per_byte);
  slowest(&PredictedHost::tcp_receive_bytes_per_s, &PredictedHost::core_tcp_receive_bytes_per_s,
          costs.receive_s_per_byte);
  slowest(&PredictedHost::cipher_bytes_per_s, &PredictedHost::cipher_bytes_per_s,
          costs.cipher_s_per_byte);
  const auto most = [&](double PredictedHost::*cost) {
    return (*std::ranges::max_element(job.hosts, {}, cost)).*cost;
  };
  const auto message = [&](double PredictedHost::*core, double PredictedHost::*trip, double frame_s,
                           double& message_s, double& wake_s) {
    if (most(core) == 0) return;
    message_s = std::max(0.0, most(core) - frame_s);
    if (most(trip) > 0) wake_s = std::max(0.0, most(trip) - 2 * most(core));
  };
  message(&PredictedHost::tcp_message_s, &PredictedHost::tcp_trip_s, costs.frame_s, costs.message_s,
          costs.wake_s);
  message(&PredictedHost::shm_message_s, &PredictedHost::shm_trip_s, costs.shared_frame_s,
          costs.shared_message_s, costs.shared_wake_s);
  for (double* const cost :
       {&costs.send_s_per_byte, &costs.receive_s_per_byte, &costs.cipher_s_per_byte, &costs.frame_s,
        &costs.shared_frame_s, &costs.hand_over_s, &costs.message_s, &costs.shared_message_s,
        &costs.wake_s, &costs.shared_wake_s, &costs.step_s}) {
    *cost *= crowd.slowdown();
  }
  return costs;
}

std::vector<double> slowness_of(const PredictedJob& job, const JobShape& shape) {
  if (job.straggler_times == 1 || job.straggler >= shape.workers || shape.workers == 1) return {};
  std::vector<double> slowness(std::size_t(shape.workers), 1.0);
  slowness[std::size_t(job.straggler)] = job.straggler_times;
  return slowness;
}

int most_workers_on_a_machine(const SimulatedCluster& cluster) {
  std::map<int, int> count;
  int most = 1;
  for (const int host : cluster.workers) {
    most = std::max(most, ++count[cluster.hosts[std::size_t(host)].machine]);
  }
  return most;
}

double value_bytes(const SimulatedStep& step) {
  double bytes = 0;
  for (const VariableSpec& spec : step.specs) bytes += double(byte_count(spec.dtype, spec.shape));
  return bytes;
}

// The number of steps of each worker that the simulation counts. The fewer the workers, the more
// their mean depends on how they happen to meet, so the more steps are counted. If steps take very
// long or move very many bytes, fewer steps are counted.
std::int64_t counted_steps(int workers, double bound, double bytes) {
  constexpr int kMost = 96, kUsual = 24, kLeast = 12, kLeastOfLong = 6;
  constexpr double kLong = 1e5, kMostBytes = 100e9;  // limits on the seconds and bytes of all steps
  constexpr int kMany = 100;  // from this many workers on, each counts few steps
  const int least = std::clamp(12000 / workers, kLeast, kUsual);
  double steps = std::clamp(480 / workers, least, kMost);
  if (bound > 0) steps = std::min(steps, kLong * bound / workers);
  if (bytes > 0) steps = std::min(steps, kMostBytes / (2 * bytes * std::min(workers, kMany)));
  return std::max(kLeastOfLong, int(steps));
}

// Counts whole periods of local steps; a full exchange ends each period. A link needs the first
// periods to get up to its rate, so these are not counted.
void count_whole_periods(SimulatedJob& job) {
  const std::int64_t period = std::int64_t{job.strategy.local_steps} * job.accumulate;
  const auto whole = [&](std::int64_t steps) { return (steps + period - 1) / period * period; };
  job.warm_steps = std::max(2 * period, whole(job.warm_steps));
  job.steps = whole(job.steps);
}

// If many workers have many variables each, the simulation joins some variables, so that it ends
// within seconds.
SimulatedStep simulated_step_of(SimulatedStep step, const JobShape& shape) {
  constexpr std::size_t kMostMessages = 20'000, kLeastGroups = 24;
  const auto workers = std::size_t(shape.workers);
  if (workers * step.specs.size() <= kMostMessages || shape.kind().splits_variables()) {
    return step;
  }
  return coarse_step(step, std::max(kLeastGroups, kMostMessages / workers));
}

// The bytes of a link's traffic that are sent at once. They are more than usual if a step would
// otherwise have very many such parts.
double quantum_of(double bytes, double usual) {
  constexpr double kPartsOfStep = 1200;
  return std::max(usual, bytes / kPartsOfStep);
}

Prediction of_way(const PredictedJob& job, const JobShape& shape) {
  SimulatedJob simulated{.cluster = cluster_of(job, shape),
                         .strategy = settled(shape.kind(), shape.strategy),
                         .wire = shape.wire,
                         .accumulate = shape.accumulate,
                         .costs = {},
                         .warm_steps = 3,
                         .gives_up = job.gives_up};
  simulated.costs = costs_of(job, simulated.cluster);
  if (shape.is_one_process()) simulated.costs.step_s = simulated.costs.alone_step_s;
  simulated.cluster.slowness = slowness_of(job, shape);
  const bool own_rules = shape.makes_local_steps() || shape.is_one_process();
  const SimulatedStep step = simulated_step_of(
      job.step({.own_rules = own_rules,
                .workers_on_machine = most_workers_on_a_machine(simulated.cluster),
                .towers = shape.towers}),
      shape);
  simulated.step = &step;
  use_caches(simulated.cluster, job, shape, step);
  const double bound = speed_limit(simulated), bytes = value_bytes(step);
  simulated.costs.quantum = quantum_of(bytes, simulated.costs.quantum);
  simulated.steps = counted_steps(shape.workers, bound, bytes);
  if (shape.makes_local_steps()) count_whole_periods(simulated);
  const SimulatedSpeed speed = simulate(simulated);
  Prediction made{.shape = shape, .steps_per_s = speed.steps_per_s};
  NamedLimit limit = limit_in_words(job, simulated, speed);
  made.limit = std::move(limit.words);
  made.limited_by = limit.kind;
  if (job.input_steps_per_s > 0 && made.steps_per_s > job.input_steps_per_s) {
    made.limit = fmt::format("the input gives {} steps/s; the devices could make {}",
                             rounded(job.input_steps_per_s), rounded(made.steps_per_s));
    made.limited_by = Limit::kInput;
    made.steps_per_s = job.input_steps_per_s;
  }
  const SpeedInterval interval = interval_of(made.limited_by, job.kernels);
  made.low = made.steps_per_s * interval.low;
  made.high = made.steps_per_s * interval.high;
  made.measured = job.kernels != KernelsFrom::kCosts;
  made.examples_per_s = made.steps_per_s * step.examples;
  made.of_bound = bound > 0 ? made.steps_per_s / bound : 0;
  return made;
}

}  // namespace

int workers_on_a_machine(const PredictedJob& job, const JobShape& shape) {
  return most_workers_on_a_machine(cluster_of(job, shape));
}

Prediction predict_alone(const PredictedJob& job) {
  Prediction alone = of_way(job, {});
  alone.times_alone = 1;
  return alone;
}

Prediction predict(const PredictedJob& job, const JobShape& shape, const Prediction& alone) {
  if (shape.is_one_device() && shape.accumulate == alone.shape.accumulate) return alone;
  Prediction made = of_way(job, shape);
  made.times_alone = made.examples_per_s / alone.examples_per_s;
  return made;
}

Prediction predict(const PredictedJob& job, const JobShape& shape) {
  return predict(job, shape, predict_alone(job));
}

Predictions predict_all(const PredictedJob& job, const std::vector<JobShape>& shapes,
                        const std::function<void(const Prediction&)>& known) {
  Predictions all;
  auto next = shapes.begin();
  try {
    const Prediction alone = predict_alone(job);
    for (; next != shapes.end() && !(job.gives_up && job.gives_up()); ++next) {
      all.made.push_back(predict(job, *next, alone));
      if (known) known(all.made.back());
    }
  } catch (const GivenUp&) {
    // The shape whose prediction was given up stays among the untried ones.
  }
  all.untried.assign(next, shapes.end());
  std::ranges::stable_sort(all.made, std::ranges::greater(), &Prediction::times_alone);
  return all;
}

}  // namespace paceline
