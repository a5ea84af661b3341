// Checks ids and labels, which come from the data, in every step before their use.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "paceline/graph.h"

namespace paceline {

/// Throws kInvalidArgument: says that `index`, at position `at` of its tensor, is outside [0,
/// limit).
[[noreturn]] void refuse_index(const Node& node, std::string_view what, std::int32_t index,
                               std::int64_t at, std::int64_t limit);

/// Throws kInvalidArgument "[op] node: label 12 at 3 is outside [0,10)" for the first index outside
/// [0, limit), if there is one. `what` is "label" or "id".
void check_indices(const Node& node, std::string_view what, std::span<const std::int32_t> indices,
                   std::int64_t limit);

}  // namespace paceline
