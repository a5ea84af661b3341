// The difference between the clusters of two tasks that should belong to one job.
#pragma once

#include <string>

namespace paceline {

/// Returns "worker:1 is b:2 here, b:3 there" for each task, five at most, whose address differs
/// between two cluster ids that are cluster specs. Empty when the ids are equal, or when one is a
/// name of its own (--cluster-id).
std::string cluster_difference(const std::string& here, const std::string& there);

}  // namespace paceline
