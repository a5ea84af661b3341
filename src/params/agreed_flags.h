// The flags of a job on which its workers must agree.
#pragma once

#include <cstdint>
#include <string>

#include "paceline/cluster.h"

namespace paceline {

/// The flags that decide what a job computes, with their values: "--accumulate 2", a line each. A
/// worker says them when it joins.
std::string agreed_flags(const Cluster& cluster, std::uint64_t seed);

}  // namespace paceline
