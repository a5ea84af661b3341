#include "predict/ps_bound.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/row_count.h"
#include "predict/own_pace.h"

namespace paceline {
namespace {

// Returns the bytes that a step reads from, or contributes to, each ps.
std::vector<double> bytes_by_ps(const StepCost& work, std::span<const Piece> pieces, std::size_t ps,
                                const std::vector<double>& bytes) {
  std::vector<double> by_ps(ps);
  for (const Piece& piece : pieces) {
    const auto v = std::size_t(piece.variable);
    by_ps[std::size_t(piece.ps)] +=
        bytes[v] * double(piece.rows) / double(row_count(work.specs[v].shape));
  }
  return by_ps;
}

/// The bytes that leave and reach a host.
struct HostLink {
  SharedResource out, in;
};

std::vector<SharedResource> links_of(const StepCost& work, std::span<const Piece> pieces,
                                     const JobHosts& hosts) {
  const std::vector<double> values = bytes_by_ps(work, pieces, hosts.ps.size(), work.bytes_in);
  const std::vector<double> given = bytes_by_ps(work, pieces, hosts.ps.size(), work.bytes_out);
  std::vector<HostLink> links(std::size_t(hosts.hosts()));
  for (std::size_t host = 0; host < links.size(); ++host) {
    for (SharedResource* way : {&links[host].out, &links[host].in}) {
      way->name = fmt::format("the link of host {}", host);
      way->capacity = hosts.link_bytes_per_s;
      way->per_step.resize(hosts.workers.size());
    }
  }
  for (std::size_t worker = 0; worker < hosts.workers.size(); ++worker) {
    for (std::size_t ps = 0; ps < hosts.ps.size(); ++ps) {
      if (hosts.ps[ps] == hosts.workers[worker]) continue;
      HostLink& server = links[std::size_t(hosts.ps[ps])];
      HostLink& own = links[std::size_t(hosts.workers[worker])];
      server.out.per_step[worker] += values[ps];
      own.in.per_step[worker] += values[ps];
      own.out.per_step[worker] += given[ps];
      server.in.per_step[worker] += given[ps];
    }
  }
  std::vector<SharedResource> all;
  for (HostLink& link : links) all.insert(all.end(), {std::move(link.out), std::move(link.in)});
  return all;
}

// Returns the bytes that the update of a variable passes over, with all gradients that it sums.
double update_bytes(const StepCost& work, std::size_t variable, int contributions) {
  const VariableSpec& spec = work.specs[variable];
  const double given = work.bytes_out[variable];
  return given / double(size_of(spec.dtype)) * rule_bytes_per_element(spec.rule) +
         double(contributions - 1) * given;
}

// Returns, by variable, the time until a worker has the value that includes its contribution.
std::vector<double> return_seconds(const StepCost& work, std::span<const Piece> pieces,
                                   const JobHosts& hosts, std::size_t worker) {
  std::vector<double> remote(work.specs.size()), seconds(work.specs.size());
  for (const Piece& piece : pieces) {
    if (hosts.ps[std::size_t(piece.ps)] == hosts.workers[worker]) continue;
    const auto v = std::size_t(piece.variable);
    remote[v] += double(piece.rows) / double(row_count(work.specs[v].shape));
  }
  for (std::size_t v = 0; v < work.specs.size(); ++v) {
    if (work.bytes_out[v] == 0) continue;
    if (hosts.memory_bytes_per_s > 0) {
      seconds[v] += update_bytes(work, v, hosts.contributions) / hosts.memory_bytes_per_s;
    }
    if (hosts.link_bytes_per_s > 0) {
      seconds[v] +=
          remote[v] * std::max(work.bytes_in[v], work.bytes_out[v]) / hosts.link_bytes_per_s;
    }
  }
  return seconds;
}

}  // namespace

SpeedBound ps_bound(const StepCost& work, const StepSchedule& schedule,
                    std::span<const Piece> pieces, const JobHosts& hosts) {
  std::vector<SharedResource> all;
  const std::size_t workers = hosts.workers.size();
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const std::vector<double> back = return_seconds(work, pieces, hosts, worker);
    for (SharedResource& pace : own_pace(schedule, work.specs, back, worker, workers)) {
      all.push_back(std::move(pace));
    }
  }
  if (hosts.link_bytes_per_s > 0) {
    for (SharedResource& link : links_of(work, pieces, hosts)) all.push_back(std::move(link));
  }
  double updated = 0;
  for (std::size_t v = 0; v < work.specs.size(); ++v) {
    updated += update_bytes(work, v, hosts.contributions) / hosts.contributions;
  }
  if (hosts.memory_bytes_per_s > 0 && updated > 0) {
    all.push_back({"the memory that rules pass over", hosts.memory_bytes_per_s,
                   std::vector<double>(workers, updated)});
  }
  return share_fairly(all, workers);
}

}  // namespace paceline
