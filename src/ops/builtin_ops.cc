#include "ops/builtin_ops.h"

#include "paceline/graph.h"

namespace paceline {

OpRegistry copy_of_builtin_ops() {
  OpRegistry ops;
  add_source_ops(ops);
  return ops;
}

const OpRegistry& builtin_ops() {
  static const OpRegistry ops = copy_of_builtin_ops();
  return ops;
}

Graph::Graph() : Graph(builtin_ops()) {}

}  // namespace paceline
