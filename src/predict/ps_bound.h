// The speed that hardware allows to workers that train with parameter servers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "params/protocol/placement.h"
#include "predict/step_cost.h"
#include "predict/step_schedule.h"

namespace paceline {

/// The hosts of a job: each task is on one, and a link joins each host to a switch. All hosts share
/// the memory of one machine, as emulated hosts do.
struct PsHosts {
  std::vector<int> ps, workers;   // the host of each task
  double link_bytes_per_s = 0;    // payload of a host's link, each way; 0: no limit
  double memory_bytes_per_s = 0;  // at which rules pass over variables
  /// So many contributions are summed for one update: 1 when each is applied as it arrives, and
  /// the number of workers in synchronous rounds.
  int contributions = 1;
  int hosts() const;
};

/// A bound, with what sets it.
struct PsBound {
  double steps_per_s = 0;       // of all workers together
  std::vector<double> workers;  // of each
  /// The limit of the workers that are slowest: "the device", "the link of host 0", "the memory
  /// that rules pass over", "the way of hidden/w from ready to needed".
  std::string limit;
};

/// Returns the bound of workers that each make the steps of `schedule`. No worker is faster than
/// its device. None begins to read a variable before its own last contribution to it is applied and
/// has come back. The bytes of values and contributions pass the links of both hosts, those that
/// tasks of one host exchange none. The rules' bytes, and further gradients that they sum, pass
/// the machine's memory. Whatever several
/// workers need they share evenly (max-min fairness; Bertsekas & Gallager, Data Networks, 1992,
/// section 6.5).
PsBound ps_bound(const StepCost& work, const StepSchedule& schedule, std::span<const Piece> pieces,
                 const PsHosts& hosts);

}  // namespace paceline
