// Kernels of several products (lstm, conv2d and their gradients) round the operands of all their
// products to bfloat16 if their node has the attribute bfloat16_products
// (graph/bfloat16_products.cc).
#pragma once

#include "paceline/graph.h"

namespace paceline {

inline bool rounds_products(const Node& node) {
  const Attributes& attributes = node.attributes();
  return attributes.has("bfloat16_products") && attributes.get<bool>("bfloat16_products");
}

}  // namespace paceline
