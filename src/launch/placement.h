// The hosts of the tasks.
#pragma once

#include <vector>

namespace paceline {

/// The host of each task, by its index.
struct Placement {
  std::vector<int> ps = {}, workers = {};
};

/// Spreads tasks over hosts: each on a host of its own where there are enough, the parameter
/// servers first; else parameter servers and workers each go round the hosts. `room` says how many
/// workers fit on each host; a host that it does not name takes any number. Throws kInvalidArgument
/// when there is not room enough.
Placement spread_tasks(int hosts, int ps, int workers, std::vector<int> room = {});

}  // namespace paceline
