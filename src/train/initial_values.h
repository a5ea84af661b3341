// The initial values of variables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "paceline/graph.h"

namespace paceline {

/// Returns one state for each variable, in the order of `specs`. Its values are those of the
/// initializer in the first graph that has the variable, drawn with `seed` in float32 and cast to
/// the variable's type. It has no slots: the store begins them as the rule says.
std::vector<VariableState> initial_values(std::span<const Graph* const> graphs,
                                          std::span<const VariableSpec> specs, std::uint64_t seed);

/// Returns the values cast to `dtype`; `values` itself if it has this type.
Tensor as_type(const Tensor& values, DType dtype);

}  // namespace paceline
