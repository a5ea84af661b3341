// What differs between the clusters of two tasks that should be of one job.
#pragma once

#include <string>

namespace paceline {

/// "worker:1 is b:2 here, b:3 there" for each task whose address differs between two cluster ids
/// that are cluster specs, at most five. Empty when they are equal, or when one is a name of its
/// own (--cluster-id).
std::string cluster_difference(const std::string& here, const std::string& there);

}  // namespace paceline
