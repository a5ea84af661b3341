// The changes that --precision makes in a graph.
#pragma once

#include "graph/rewrite.h"
#include "paceline/tensor.h"

namespace paceline {

/// Returns the rewrites for float32, or for bfloat16: with it, products read rounded operands, in
/// the type that this machine multiplies faster. Throws kInvalidArgument for other types.
RewriteOptions rewrite_to(DType precision);

}  // namespace paceline
