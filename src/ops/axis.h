// Dimensions that attributes name.
#pragma once

#include <cstdint>

#include "paceline/op.h"

namespace paceline {

/// `axis` of a tensor of `rank` dimensions, from 0 on: a negative one is counted from the end.
constexpr int axis_from_start(std::int64_t axis, int rank) {
  return int(axis < 0 ? axis + rank : axis);
}

/// The attribute "axis" of concat and split, whose inputs and outputs have one rank.
inline int axis_of(const Node& node) {
  return axis_from_start(node.attributes().get<std::int64_t>("axis"),
                         node.outputs()[0].shape.rank());
}

}  // namespace paceline
