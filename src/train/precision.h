// The changes that --precision and --device make in a graph.
#pragma once

#include "graph/rewrite.h"
#include "paceline/cluster.h"

namespace paceline {

/// Returns the rewrites for the devices of a cluster and for its precision: with bfloat16, products
/// read rounded operands, in the type that this machine multiplies faster. Throws kInvalidArgument
/// for types other than float32 and bfloat16.
RewriteOptions rewrite_of(const Cluster& cluster);

}  // namespace paceline
