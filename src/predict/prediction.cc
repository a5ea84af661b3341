#include "predict/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/printed.h"
#include "paceline/error.h"
#include "params/protocol/placement.h"
#include "predict/limit_in_words.h"
#include "predict/memory_passes.h"
#include "predict/simulation/coarse_step.h"
#include "predict/simulation/simulate.h"
#include "predict/speed_limit.h"

namespace paceline {
namespace {

// Parameter servers run on the hosts without devices first, and then on the others in their order.
std::vector<int> ps_hosts_of(const PredictedJob& job, const JobShape& shape) {
  std::vector<int> order(job.hosts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{},
                           [&](int host) { return job.hosts[std::size_t(host)].devices == 0; });
  std::vector<int> hosts = shape.ps_hosts;
  while (int(hosts.size()) < shape.ps) hosts.push_back(order[hosts.size() % order.size()]);
  return hosts;
}

// Workers are spread over the hosts, each with a device, from the first on: that after the last
// parameter server where there is a host for every task, as emulated hosts have their tasks.
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

// Beside other tasks, a pass of a rule reaches so much of the rate that it reaches alone: runs of
// mlp whose workers do not wait for each other fit 0.87 to 0.96.
constexpr double kRulesBesideTasks = 0.91;
// So does TCP: runs of mlp and ptb fit 0.87 to 1.0.
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

// Rules pass faster over arrays that stay in the caches from one step to the next. All of them stay
// where they fill half of the last level, and none where they fill it: what was used last is kept.
double cached_share(double bytes) {
  return std::clamp(2 - 2 * bytes / double(cache_bytes()), 0.0, 1.0);
}

// The parameter servers share one copy of the variables; where there are none, and where workers
// make local steps, each worker has its own.
void use_caches(SimulatedCluster& cluster, const PredictedJob& job, const JobShape& shape,
                const SimulatedStep& step) {
  std::map<int, double> bytes;  // of each machine
  const double copy = step.rule_bytes();
  for (const int host : cluster.ps)
    bytes[cluster.hosts[std::size_t(host)].machine] += copy / shape.ps;
  const bool own = shape.ps == 0 || shape.makes_local_steps() || shape.kind().splits_variables();
  for (const int host : cluster.workers) {
    bytes[cluster.hosts[std::size_t(host)].machine] += own ? copy : 0;
  }
  for (const PredictedHost& host : job.hosts) {
    const auto tasks = bytes.extract(host.machine);  // emulated hosts share a machine
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

/// The tasks of the machine that has the most of them for each core.
struct Crowd {
  double tasks = 1, cores = 1;
  bool alone = true;  // no other machine has any

  // Many tasks on few cores take each other's caches, and are woken later.
  double slowdown() const {
    constexpr double kOfEachTask = 0.03;  // of the time, beyond one for each core
    return 1 + kOfEachTask * (std::max(1.0, tasks / cores) - 1);
  }
  // Tasks are spread over the cores as chance has it: this share of their messages stays in one.
  double share_within_a_core() const {
    return alone && tasks > cores ? (tasks / cores - 1) / (tasks - 1) : 0;
  }
};

Crowd crowd_of(const SimulatedCluster& cluster) {
  std::map<int, int> tasks;  // of each machine
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

// The hosts' cores are taken to be as the slowest of them at this.
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
  for (double* const cost :
       {&costs.send_s_per_byte, &costs.receive_s_per_byte, &costs.cipher_s_per_byte, &costs.frame_s,
        &costs.shared_frame_s, &costs.hand_over_s, &costs.wake_s, &costs.step_s}) {
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

// The steps of each worker that are counted. The fewer workers there are, the more their mean goes
// by how they happen to meet. Where steps take very long, or have very many frames, fewer tell the
// same.
std::int64_t counted_steps(int workers, double bound, double bytes) {
  constexpr int kMost = 96, kUsual = 24, kLeast = 12, kLeastOfLong = 6;
  constexpr double kLong = 1e5, kMostBytes = 100e9;  // seconds and bytes of all steps
  constexpr int kMany = 100;                         // workers, of whom few steps are counted
  const int least = std::clamp(12000 / workers, kLeast, kUsual);
  double steps = std::clamp(480 / workers, least, kMost);
  if (bound > 0) steps = std::min(steps, kLong * bound / workers);
  if (bytes > 0) steps = std::min(steps, kMostBytes / (2 * bytes * std::min(workers, kMany)));
  return std::max(kLeastOfLong, int(steps));
}

// A period lies between two exchanges of everything. The first ones bring a link to its pace.
void count_whole_periods(SimulatedJob& job) {
  const std::int64_t period = std::int64_t{job.strategy.local_steps} * job.accumulate;
  const auto whole = [&](std::int64_t steps) { return (steps + period - 1) / period * period; };
  job.warm_steps = std::max(2 * period, whole(job.warm_steps));
  job.steps = whole(job.steps);
}

// Many workers with many variables each: some are taken together, so that it takes seconds.
SimulatedStep simulated_step_of(SimulatedStep step, const JobShape& shape) {
  constexpr std::size_t kMostMessages = 20'000, kLeastGroups = 24;
  const auto workers = std::size_t(shape.workers);
  if (workers * step.specs.size() <= kMostMessages || shape.kind().splits_variables()) {
    return step;
  }
  return coarse_step(step, std::max(kLeastGroups, kMostMessages / workers));
}

// The part of a link's traffic that is sent at once: larger where a step has many of them.
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
    // The way that was under way is one of those that are left.
  }
  all.untried.assign(next, shapes.end());
  std::ranges::stable_sort(all.made, std::ranges::greater(), &Prediction::times_alone);
  return all;
}

}  // namespace paceline
