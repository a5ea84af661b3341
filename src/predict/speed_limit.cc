#include "predict/speed_limit.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/row_count.h"
#include "params/protocol/placement.h"
#include "params/variable_arrays.h"
#include "predict/step_cost.h"

namespace paceline {
namespace {

/// The bytes that a step of every worker moves over the links.
struct StepBytes {
  explicit StepBytes(std::size_t hosts) : out(hosts), in(hosts) {}
  std::vector<double> out, in;  // by host
  double most(std::size_t host) const { return std::max(out[host], in[host]); }
};

double wire_bytes(const SimulatedJob& job, VariableId v) {
  const StepVariable& use = job.step->variables[std::size_t(v)];
  if (!use.updated) return 0;
  return touched_bytes(job.step->specs[std::size_t(v)], use.most_rows) / (job.way.bfloat16 ? 2 : 1);
}

StepBytes with_ps(const SimulatedJob& job) {
  const SimulatedCluster& cluster = job.cluster;
  StepBytes bytes(cluster.hosts.size());
  for (const Piece& piece : place_variables(job.step->specs, int(cluster.ps.size()))) {
    const VariableSpec& spec = job.step->specs[std::size_t(piece.variable)];
    const double each =
        wire_bytes(job, piece.variable) * double(piece.rows) / double(row_count(spec.shape));
    const auto ps = std::size_t(cluster.ps[std::size_t(piece.ps)]);
    for (const int worker : cluster.workers) {
      if (std::size_t(worker) == ps) continue;
      for (const std::size_t host : {ps, std::size_t(worker)}) {
        bytes.out[host] += each;
        bytes.in[host] += each;
      }
    }
  }
  return bytes;
}

StepBytes in_a_ring(const SimulatedJob& job) {
  const SimulatedCluster& cluster = job.cluster;
  StepBytes bytes(cluster.hosts.size());
  double all = 0;
  for (std::size_t v = 0; v < job.step->specs.size(); ++v) all += wire_bytes(job, VariableId(v));
  const std::size_t workers = cluster.workers.size();
  const double each = 2 * all * double(workers - 1) / double(workers);
  for (std::size_t w = 0; w < workers; ++w) {
    const auto from = std::size_t(cluster.workers[w]);
    const auto to = std::size_t(cluster.workers[(w + 1) % workers]);
    if (from == to) continue;
    bytes.out[from] += each;
    bytes.in[to] += each;
  }
  return bytes;
}

// A worker on the host of the only ps sends nothing over a link.
bool is_remote(const SimulatedCluster& cluster, int host) {
  return std::ranges::any_of(cluster.ps, [&](int ps) { return ps != host; });
}

// Whoever needs a link shares it evenly with the others.
double links_allow(const SimulatedJob& job, double device, const StepBytes& bytes, bool ring) {
  const SimulatedCluster& cluster = job.cluster;
  const auto accumulated = double(job.way.accumulate);
  double shared = 1 / device, all = 0;
  for (std::size_t host = 0; host < cluster.hosts.size(); ++host) {
    const double rate = cluster.hosts[host].link_bytes_per_s * accumulated;
    if (rate > 0 && bytes.most(host) > 0) shared = std::min(shared, rate / bytes.most(host));
  }
  for (const int host : cluster.workers) {
    all += ring || is_remote(cluster, host) ? shared : 1 / device;
  }
  return all;
}

}  // namespace

double speed_limit(const SimulatedJob& job) {
  const SimulatedCluster& cluster = job.cluster;
  const double workers = double(cluster.workers.size());
  double device = 0, rules = 0;
  for (const StepAction& action : job.step->actions) device += action.seconds;
  for (const StepVariable& use : job.step->variables) rules += use.rule_bytes;
  rules /= double(job.way.accumulate);
  const bool ring = job.way.strategy == "allreduce", alone = cluster.ps.empty() && !ring;
  const double rule_seconds =
      cluster.machines[0].bytes_per_s > 0 ? rules / cluster.machines[0].bytes_per_s : 0;
  if (alone) return workers / (device + rule_seconds);
  const double step = device + (ring ? rule_seconds : 0);
  double limit = links_allow(job, step, ring ? in_a_ring(job) : with_ps(job), ring);
  // In rounds the workers share an update.
  const double shared = job.way.strategy == "sync" ? workers : 1;
  const double ps_machines =
      std::max(1.0, double(std::min(cluster.ps.size(), cluster.machines.size())));
  if (!ring && rule_seconds > 0) limit = std::min(limit, shared * ps_machines / rule_seconds);
  return limit;
}

}  // namespace paceline
