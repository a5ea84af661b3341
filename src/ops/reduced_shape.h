// The dimensions of a reduction.
#pragma once

#include <vector>

#include "paceline/graph.h"

namespace paceline {

/// For each axis of an input of `rank`: is it reduced? From the attribute "axes": none names all.
std::vector<bool> reduced_axes(const Attributes& attributes, int rank);

}  // namespace paceline
