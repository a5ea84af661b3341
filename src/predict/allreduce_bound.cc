#include "predict/allreduce_bound.h"

#include <fmt/format.h>

#include <numeric>

#include "predict/own_pace.h"

namespace paceline {
namespace {

// Returns the bytes that pass the memory for one variable in a round of all workers.
double memory_bytes(const StepCost& work, std::size_t variable, double workers) {
  const VariableSpec& spec = work.specs[variable];
  const double given = work.bytes_out[variable];
  const double update = given / double(size_of(spec.dtype)) * rule_bytes_per_element(spec.rule);
  return (workers + 1) * given + workers * update;
}

}  // namespace

SpeedBound allreduce_bound(const StepCost& work, const StepSchedule& schedule,
                           const JobHosts& hosts) {
  const std::size_t workers = hosts.workers.size();
  const double m = hosts.hosts();
  const double sent = 2 * (m - 1) / m;  // times the bytes of a contribution
  std::vector<double> back(work.specs.size());
  double passed = 0;
  for (std::size_t v = 0; v < work.specs.size(); ++v) {
    if (work.bytes_out[v] == 0) continue;
    passed += memory_bytes(work, v, double(workers));
    if (hosts.memory_bytes_per_s > 0) {
      back[v] += memory_bytes(work, v, double(workers)) / hosts.memory_bytes_per_s;
    }
    if (hosts.link_bytes_per_s > 0) back[v] += sent * work.bytes_out[v] / hosts.link_bytes_per_s;
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
  const double given = std::accumulate(work.bytes_out.begin(), work.bytes_out.end(), 0.0);
  for (int host = 0; hosts.link_bytes_per_s > 0 && host < hosts.hosts(); ++host) {
    all.push_back(
        {fmt::format("the link of host {}", host), hosts.link_bytes_per_s, evenly(sent * given)});
  }
  if (hosts.memory_bytes_per_s > 0) {
    all.push_back(
        {"the memory that sums and rules pass over", hosts.memory_bytes_per_s, evenly(passed)});
  }
  return share_fairly(all, workers);
}

}  // namespace paceline
