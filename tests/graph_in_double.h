// For tests: a graph again, with all that is float32 in float64.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kernels/evaluate.h"
#include "paceline/graph.h"

namespace paceline::testing {

/// The nodes of a graph and, by the old ones, the values of the new graph.
class GraphInDouble {
 public:
  explicit GraphInDouble(const Graph& graph);
  Value operator()(const Value& old) const { return values_.at({old.node().id(), old.output()}); }

 private:
  Graph graph_;
  std::map<std::pair<int, int>, Value> values_;
};

/// The tensor, in float64 if it is float32.
Tensor in_double(const Tensor& tensor);

/// ‖a − b‖ ÷ ‖b‖ of float32 `a` and float64 `b`.
double relative_distance(const Tensor& a, const Tensor& b);

}  // namespace paceline::testing
