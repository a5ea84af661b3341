// Values that lie in the memory of another value.
#pragma once

#include <cstddef>

#include "paceline/graph.h"

namespace paceline {

/// True if all of the node's outputs lie in the memory of its input 0, each at a multiple of
/// kBufferAlignment bytes, as kernels need it. A plan runs no kernel for such a node.
bool is_view(const Node& node);
/// Returns the offset in bytes at which an output of a view begins in input 0.
std::size_t view_offset(const Node& node, int output);
/// True when the node's only output is input 0 under another shape: such a node has no kernel.
bool is_reshaped(const Node& node);

}  // namespace paceline
