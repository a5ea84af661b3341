// Dimensions that attributes name.
#pragma once

#include <cstdint>

#include "paceline/op.h"

namespace paceline {

/// Returns the index, from 0, of the dimension `axis` in a tensor of `rank` dimensions. A negative
/// `axis` counts from the end.
constexpr int axis_from_start(std::int64_t axis, int rank) {
  return int(axis < 0 ? axis + rank : axis);
}

/// Returns the attribute "axis" of concat or split, whose inputs and outputs have the same rank.
inline int axis_of(const Node& node) {
  return axis_from_start(node.attributes().get<std::int64_t>("axis"),
                         node.outputs()[0].shape.rank());
}

}  // namespace paceline
