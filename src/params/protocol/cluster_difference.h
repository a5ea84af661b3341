// The difference between the clusters of two tasks that should belong to one job.
#pragma once

#include <string>

namespace paceline {

/// Compares two cluster ids that are cluster specs. Returns "worker:1 is b:2 here, b:3 there" for
/// the first five tasks whose addresses differ, and how many more differ. Empty when the ids are
/// equal, or when one of them is a name that the user chose (--cluster-id).
std::string cluster_difference(const std::string& here, const std::string& there);

}  // namespace paceline
