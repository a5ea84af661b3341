// The dimensions of a reduction.
#pragma once

#include <vector>

#include "paceline/graph.h"

namespace paceline {

/// Returns for each axis of an input of `rank` whether it is reduced, from the attribute "axes"; an
/// empty one names all.
std::vector<bool> reduced_axes(const Attributes& attributes, int rank);

}  // namespace paceline
