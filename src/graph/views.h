// Values that lie in another's memory.
#pragma once

#include <cstddef>

#include "paceline/graph.h"

namespace paceline {

/// True when all of the node's outputs lie in its input 0, each at a place where kernels take their
/// operands (a multiple of kBufferAlignment bytes). A plan then runs no kernel for the node.
bool is_view(const Node& node);
/// Returns the offset in bytes at which an output of a view begins in input 0.
std::size_t view_offset(const Node& node, int output);
/// True when the node's only output is input 0 under another shape: such a node has no kernel.
bool is_reshaped(const Node& node);

}  // namespace paceline
