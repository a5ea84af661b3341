// The dimensions of a reduction.
#pragma once

#include <vector>

#include "paceline/graph.h"

namespace paceline {

/// Returns, for each axis of an input of `rank` dimensions, whether the attribute "axes" reduces
/// it. An empty "axes" reduces all.
std::vector<bool> reduced_axes(const Attributes& attributes, int rank);

}  // namespace paceline
