// Nodes whose values no kernel makes.
#pragma once

#include <string_view>

#include "paceline/graph.h"
#include "paceline/op.h"

namespace paceline {

inline bool is_variable(const Node& node) { return node.op().name == "variable"; }
inline bool is_constant(const Node& node) { return node.op().name == "constant"; }

/// True if the values of nodes of this op come from outside the graph. Two such nodes never count
/// as equal.
inline bool is_fed(std::string_view op) {
  return op == "input" || op == "variable" || op == "local";
}
inline bool is_fed(const Node& node) { return is_fed(node.op().name); }

/// True for the ops that are fed and for constants.
inline bool is_source(std::string_view op) { return is_fed(op) || op == "constant"; }
inline bool is_source(const Node& node) { return is_source(node.op().name); }

}  // namespace paceline
