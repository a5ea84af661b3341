// The speed that hardware allows a job's workers, and what limits it.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// One of the limits of a bound.
struct BoundTerm {
  std::string what;  // "the link of host 0"
  // The speed of each worker that uses the resource, if nothing else limited these workers.
  double steps_per_s = 0;
};

struct SpeedBound {
  double steps_per_s = 0;       // all workers together
  std::vector<double> workers;  // each worker
  /// The limit of the slowest workers: "the device", "the link of host 0", "the memory that rules
  /// pass over", "the way of hidden/w from ready to needed".
  std::string limit;
  std::vector<BoundTerm> terms;  // every limit once, for the workers that it slows down most
};

/// The hosts of a job. Each task is on one host, and a link joins each host to a switch. All hosts
/// share the memory of one machine, as emulated hosts do.
struct JobHosts {
  // The host of each task; an all-reduce has no ps.
  std::vector<int> ps = {}, workers = {};
  double link_bytes_per_s = 0;    // payload of a host's link, in each direction; 0: no limit
  double memory_bytes_per_s = 0;  // the rate at which rules pass over variables; 0: no limit
  /// The contributions that one update of a ps sums: 1 if each is applied as it arrives, and the
  /// number of workers in synchronous rounds.
  int contributions = 1;
  int hosts() const;  // returns 1 + the largest index of a task's host
};

/// A resource that workers share, and how much of it each uses in a step.
struct SharedResource {
  std::string name;
  double capacity = 0;           // per second
  std::vector<double> per_step;  // use per step, by worker
};

/// Returns the speed of workers that share the resources evenly (max-min fairness; Bertsekas &
/// Gallager, Data Networks, 1992, section 6.5).
SpeedBound share_fairly(const std::vector<SharedResource>& resources, std::size_t workers);

}  // namespace paceline
