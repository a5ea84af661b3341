#include "predict/ps_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/row_count.h"

namespace paceline {
namespace {

/// Something that workers share: each uses so much of it in a step.
struct Shared {
  std::string name;
  double capacity = 0;           // in a second
  std::vector<double> per_step;  // by worker
};

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
  Shared out, in;
};

std::vector<Shared> links_of(const StepCost& work, std::span<const Piece> pieces,
                             const PsHosts& hosts) {
  const std::vector<double> values = bytes_by_ps(work, pieces, hosts.ps.size(), work.bytes_in);
  const std::vector<double> given = bytes_by_ps(work, pieces, hosts.ps.size(), work.bytes_out);
  std::vector<HostLink> links(std::size_t(hosts.hosts()));
  for (std::size_t host = 0; host < links.size(); ++host) {
    for (Shared* way : {&links[host].out, &links[host].in}) {
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
  std::vector<Shared> all;
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

// Returns, by variable, the part of its bytes that lies on other hosts than the worker's.
std::vector<double> remote_parts(const StepCost& work, std::span<const Piece> pieces,
                                 const PsHosts& hosts, std::size_t worker) {
  std::vector<double> parts(work.specs.size());
  for (const Piece& piece : pieces) {
    if (hosts.ps[std::size_t(piece.ps)] == hosts.workers[worker]) continue;
    const auto v = std::size_t(piece.variable);
    parts[v] += double(piece.rows) / double(row_count(work.specs[v].shape));
  }
  return parts;
}

// Returns the shortest time of a worker's step: that of its device, or of one variable from the
// moment when the worker needs it to the next.
Shared own_pace(const StepCost& work, const StepSchedule& schedule, const PsHosts& hosts,
                std::size_t worker, const std::vector<double>& remote) {
  Shared pace{"the device", 1, std::vector<double>(hosts.workers.size())};
  double seconds = schedule.seconds;
  for (std::size_t v = 0; v < schedule.variables.size(); ++v) {
    const VariableMoments& moments = schedule.variables[v];
    if (work.bytes_out[v] == 0) continue;
    double way = moments.ready - moments.needed;
    if (hosts.memory_bytes_per_s > 0) {
      way += update_bytes(work, v, hosts.contributions) / hosts.memory_bytes_per_s;
    }
    if (hosts.link_bytes_per_s > 0) {
      way += remote[v] * std::max(work.bytes_in[v], work.bytes_out[v]) / hosts.link_bytes_per_s;
    }
    if (way <= seconds) continue;
    seconds = way;
    constexpr double kNoticeable = 1.01;
    if (way > kNoticeable * schedule.seconds)
      pace.name = fmt::format("the way of {} from ready to needed", work.specs[v].name);
  }
  pace.per_step[worker] = seconds;
  return pace;
}

// Raises the rates of all workers together until something is used up, which holds the workers that
// use it, and goes on with the others.
PsBound share_fairly(const std::vector<Shared>& all, std::size_t workers) {
  PsBound bound{0, std::vector<double>(workers), ""};
  std::vector<bool> held(workers);
  while (std::ranges::count(held, false) > 0) {
    double least = std::numeric_limits<double>::infinity();
    const Shared* tightest = nullptr;
    for (const Shared& each : all) {
      double used = 0, wanted = 0;
      for (std::size_t w = 0; w < workers; ++w) {
        (held[w] ? used : wanted) += each.per_step[w] * (held[w] ? bound.workers[w] : 1);
      }
      if (wanted == 0 || (each.capacity - used) / wanted >= least) continue;
      least = (each.capacity - used) / wanted;
      tightest = &each;
    }
    if (tightest == nullptr) break;
    if (bound.limit.empty()) bound.limit = tightest->name;
    for (std::size_t w = 0; w < workers; ++w) {
      if (held[w] || tightest->per_step[w] == 0) continue;
      bound.workers[w] = least;
      held[w] = true;
    }
  }
  for (const double rate : bound.workers) bound.steps_per_s += rate;
  return bound;
}

}  // namespace

int PsHosts::hosts() const {
  int last = 0;
  for (const int host : ps) last = std::max(last, host);
  for (const int host : workers) last = std::max(last, host);
  return last + 1;
}

PsBound ps_bound(const StepCost& work, const StepSchedule& schedule, std::span<const Piece> pieces,
                 const PsHosts& hosts) {
  std::vector<Shared> all;
  const std::size_t workers = hosts.workers.size();
  for (std::size_t worker = 0; worker < workers; ++worker) {
    all.push_back(
        own_pace(work, schedule, hosts, worker, remote_parts(work, pieces, hosts, worker)));
  }
  if (hosts.link_bytes_per_s > 0) {
    for (Shared& link : links_of(work, pieces, hosts)) all.push_back(std::move(link));
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
