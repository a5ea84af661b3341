#include "evidence/ps_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/row_count.h"
#include "evidence/own_pace.h"
#include "evidence/round_seconds.h"

namespace paceline {
namespace {

/// The share of each variable that each ps keeps.
class Shares {
 public:
  Shares(const StepCost& work, std::span<const Piece> pieces, std::size_t ps)
      : of_(ps, std::vector<double>(work.specs.size())) {
    for (const Piece& piece : pieces) {
      const auto v = std::size_t(piece.variable);
      of_[std::size_t(piece.ps)][v] += double(piece.rows) / double(row_count(work.specs[v].shape));
    }
  }
  std::size_t variables() const { return of_.front().size(); }
  double of(std::size_t ps, std::size_t variable) const { return of_[ps][variable]; }
  /// Returns the bytes that a step reads from, or contributes to, a ps; `bytes` has the bytes of
  /// each variable.
  double bytes_of(std::size_t ps, const std::vector<double>& bytes) const {
    return std::inner_product(bytes.begin(), bytes.end(), of_[ps].begin(), 0.0);
  }

 private:
  std::vector<std::vector<double>> of_;  // by ps and variable
};

/// The bytes that leave and that reach a host.
struct HostLink {
  SharedResource out, in;
};

std::vector<SharedResource> links_of(const StepCost& work, const Shares& shares,
                                     const JobHosts& hosts) {
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
      const double values = shares.bytes_of(ps, work.bytes_in);
      const double given = shares.bytes_of(ps, work.bytes_out);
      HostLink& server = links[std::size_t(hosts.ps[ps])];
      HostLink& own = links[std::size_t(hosts.workers[worker])];
      server.out.per_step[worker] += values;
      own.in.per_step[worker] += values;
      own.out.per_step[worker] += given;
      server.in.per_step[worker] += given;
    }
  }
  std::vector<SharedResource> all;
  for (HostLink& link : links) all.insert(all.end(), {std::move(link.out), std::move(link.in)});
  return all;
}

// Returns the bytes that a variable's update passes over, including all gradients that it sums.
double update_bytes(const StepCost& work, std::size_t variable, int contributions) {
  const VariableSpec& spec = work.specs[variable];
  const double given = work.bytes_out[variable];
  return given / double(size_of(spec.dtype)) * rule_bytes_per_element(spec.rule) +
         double(contributions - 1) * given;
}

// Returns, by variable, the seconds from the moment at which a worker's contribution is ready until
// the worker has the new value.
std::vector<double> return_seconds(const StepCost& work, const Shares& shares,
                                   const JobHosts& hosts, std::size_t worker) {
  std::vector<double> seconds(work.specs.size());
  for (std::size_t v = 0; v < work.specs.size(); ++v) {
    if (work.bytes_out[v] == 0) continue;
    double remote = 0;
    for (std::size_t ps = 0; ps < hosts.ps.size(); ++ps) {
      if (hosts.ps[ps] != hosts.workers[worker]) remote += shares.of(ps, v);
    }
    if (hosts.memory_bytes_per_s > 0) {
      seconds[v] += update_bytes(work, v, hosts.contributions) / hosts.memory_bytes_per_s;
    }
    if (hosts.link_bytes_per_s > 0) {
      seconds[v] += remote * std::max(work.bytes_in[v], work.bytes_out[v]) / hosts.link_bytes_per_s;
    }
  }
  return seconds;
}

/// The seconds, by variable, that links take to carry the workers' bytes.
class LinkSeconds {
 public:
  LinkSeconds(const Shares& shares, const JobHosts& hosts) : shares_(shares), hosts_(hosts) {}
  /// The seconds of all hosts' links; `bytes` has the bytes of each variable that a worker moves.
  SecondsByResource of_hosts(const std::vector<double>& bytes) const {
    SecondsByResource ends(2 * std::size_t(hosts_.hosts()), none());
    for (std::size_t worker = 0; worker < hosts_.workers.size(); ++worker) {
      for (std::size_t ps = 0; ps < hosts_.ps.size(); ++ps) {
        if (hosts_.ps[ps] == hosts_.workers[worker]) continue;
        add(ends[2 * std::size_t(hosts_.ps[ps])], ps, bytes);
        add(ends[2 * std::size_t(hosts_.workers[worker]) + 1], ps, bytes);
      }
    }
    return ends;
  }
  /// The seconds of the link of the worker that moves the fewest bytes over its own link.
  std::vector<double> of_first_worker(const std::vector<double>& bytes) const {
    std::vector<double> least;
    for (const int host : hosts_.workers) {
      std::vector<double> own = none();
      for (std::size_t ps = 0; ps < hosts_.ps.size(); ++ps) {
        if (hosts_.ps[ps] != host) add(own, ps, bytes);
      }
      if (least.empty() || std::accumulate(own.begin(), own.end(), 0.0) <
                               std::accumulate(least.begin(), least.end(), 0.0)) {
        least = std::move(own);
      }
    }
    return least;
  }

 private:
  std::vector<double> none() const { return std::vector<double>(shares_.variables()); }
  void add(std::vector<double>& seconds, std::size_t ps, const std::vector<double>& bytes) const {
    for (std::size_t v = 0; v < seconds.size(); ++v) {
      seconds[v] += shares_.of(ps, v) * bytes[v] / hosts_.link_bytes_per_s;
    }
  }

  const Shares& shares_;
  const JobHosts& hosts_;
};

double seconds_of_round(const StepCost& work, const StepSchedule& schedule, const Shares& shares,
                        const JobHosts& hosts) {
  RoundPart values, contributions;
  if (hosts.memory_bytes_per_s > 0) {
    std::vector<double> updates(work.specs.size());
    for (std::size_t v = 0; v < updates.size(); ++v) {
      updates[v] = update_bytes(work, v, hosts.contributions) / hosts.memory_bytes_per_s;
    }
    values = {.last = {updates}, .first = {updates}};
  }
  if (hosts.link_bytes_per_s > 0) {
    const LinkSeconds links(shares, hosts);
    for (std::vector<double>& link : links.of_hosts(work.bytes_in)) {
      values.last.push_back(std::move(link));
    }
    values.first.push_back(links.of_first_worker(work.bytes_in));
    contributions = {.last = links.of_hosts(work.bytes_out),
                     .first = {links.of_first_worker(work.bytes_out)}};
  }
  return round_seconds(schedule, values, contributions);
}

}  // namespace

SpeedBound ps_bound(const StepCost& work, const StepSchedule& schedule,
                    std::span<const Piece> pieces, const JobHosts& hosts) {
  const Shares shares(work, pieces, hosts.ps.size());
  std::vector<SharedResource> all;
  const std::size_t workers = hosts.workers.size();
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const std::vector<double> back = return_seconds(work, shares, hosts, worker);
    for (SharedResource& pace : own_pace(schedule, work.specs, back, worker, workers)) {
      all.push_back(std::move(pace));
    }
  }
  if (hosts.link_bytes_per_s > 0) {
    for (SharedResource& link : links_of(work, shares, hosts)) all.push_back(std::move(link));
  }
  double updated = 0;
  for (std::size_t v = 0; v < work.specs.size(); ++v) {
    updated += update_bytes(work, v, hosts.contributions) / hosts.contributions;
  }
  if (hosts.memory_bytes_per_s > 0 && updated > 0) {
    all.push_back({"the memory that rules pass over", hosts.memory_bytes_per_s,
                   std::vector<double>(workers, updated)});
  }
  if (hosts.contributions > 1) {
    const double round = seconds_of_round(work, schedule, shares, hosts);
    for (std::size_t worker = 0; worker < workers; ++worker) {
      all.push_back(pace_of("the way of a round", round, worker, workers));
    }
  }
  return share_fairly(all, workers);
}

}  // namespace paceline
