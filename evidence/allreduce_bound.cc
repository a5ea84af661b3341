#include "evidence/allreduce_bound.h"

#include <fmt/format.h>

#include "evidence/own_pace.h"
#include "evidence/round_seconds.h"

namespace paceline {
namespace {

/// The bytes that one variable moves in a round of all workers.
struct UseOfRound {
  double summed = 0, updated = 0;  // bytes that pass the memory
  double sent = 0;                 // bytes that each host sends
};

UseOfRound use_of(const StepCost& work, std::size_t variable, const JobHosts& hosts) {
  const VariableSpec& spec = work.specs[variable];
  const double given = work.bytes_out[variable];
  const double update = given / double(size_of(spec.dtype)) * rule_bytes_per_element(spec.rule);
  const double workers = double(hosts.workers.size()), m = hosts.hosts();
  return {.summed = (workers + 1) * given,
          .updated = workers * update,
          .sent = 2 * (m - 1) / m * given};
}

double seconds(double amount, double per_s) { return per_s > 0 ? amount / per_s : 0; }

}  // namespace

SpeedBound allreduce_bound(const StepCost& work, const StepSchedule& schedule,
                           const JobHosts& hosts) {
  const std::size_t workers = hosts.workers.size(), variables = work.specs.size();
  std::vector<double> back(variables), updating(variables), summing(variables), sending(variables);
  double passed = 0, sent = 0;
  for (std::size_t v = 0; v < variables; ++v) {
    if (work.bytes_out[v] == 0) continue;
    const UseOfRound use = use_of(work, v, hosts);
    passed += use.summed + use.updated;
    sent += use.sent;
    updating[v] = seconds(use.updated, hosts.memory_bytes_per_s);
    summing[v] = seconds(use.summed, hosts.memory_bytes_per_s);
    sending[v] = seconds(use.sent, hosts.link_bytes_per_s);
    back[v] = updating[v] + summing[v] + sending[v];
  }
  std::vector<SharedResource> all;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    for (SharedResource& pace : own_pace(schedule, work.specs, back, worker, workers)) {
      all.push_back(std::move(pace));
    }
  }
  const auto evenly = [&](double bytes) {
    return std::vector<double>(workers, bytes / double(workers));
  };
  for (int host = 0; hosts.link_bytes_per_s > 0 && host < hosts.hosts(); ++host) {
    all.push_back({fmt::format("the link of host {}", host), hosts.link_bytes_per_s, evenly(sent)});
  }
  if (hosts.memory_bytes_per_s > 0) {
    all.push_back(
        {"the memory that sums and rules pass over", hosts.memory_bytes_per_s, evenly(passed)});
  }
  // No value is overwritten before all workers have committed the step, so the updates of a round
  // follow its reduction.
  const SecondsByResource reduction = {summing, sending};
  const double round = round_seconds(schedule, {.last = {updating}, .first = {updating}},
                                     {.last = reduction, .first = reduction});
  for (std::size_t worker = 0; worker < workers; ++worker) {
    all.push_back(pace_of("the way of a round", round, worker, workers));
  }
  return share_fairly(all, workers);
}

}  // namespace paceline
