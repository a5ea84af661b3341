// The initial values of variables and their slots.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "paceline/graph.h"

namespace paceline {

/// One state a variable, in the order of `specs`: the values of its initializer in the first of the
/// graphs that has it, drawn with `seed` in float32 and then cast to its type; no slots: those
/// begin as the rule says.
std::vector<VariableState> initial_values(std::span<const Graph* const> graphs,
                                          std::span<const VariableSpec> specs, std::uint64_t seed);

/// The same values in another type.
Tensor as_type(const Tensor& values, DType dtype);

}  // namespace paceline
