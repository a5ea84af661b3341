// The hosts of the tasks.
#pragma once

#include <vector>

namespace paceline {

/// The host of each task, by its index.
struct Placement {
  std::vector<int> ps = {}, workers = {};
};

/// Spreads tasks over hosts. If there are enough hosts, each task gets its own, the parameter
/// servers first; otherwise parameter servers and workers each go round the hosts. `room` says how
/// many workers fit on each host; a host that it does not mention takes any number. Throws
/// kInvalidArgument if there is not enough room.
Placement spread_tasks(int hosts, int ps, int workers, std::vector<int> room = {});

}  // namespace paceline
