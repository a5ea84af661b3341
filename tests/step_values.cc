#include "tests/step_values.h"

#include "graph/initializer_of.h"
#include "graph/sources.h"
#include "paceline/op.h"

namespace paceline::testing {

Feeds step_feeds(const Graph& graph) {
  Feeds feeds;
  for (const auto& node : graph.nodes()) {
    if (!is_fed(*node)) continue;
    const ValueType& type = node->outputs()[0];
    Tensor tensor(type.dtype, type.shape);
    if (is_variable(*node)) {
      initializer_of(*node).fill(tensor.data<float>(), type.shape, 1, node->name());
    } else if (node->op().name == "input" && type.dtype == DType::kFloat32) {
      Initializer::normal(0, 1).fill(tensor.data<float>(), type.shape, 2, node->name());
    } else if (node->op().name == "input") {
      std::uint64_t next = 0;
      for (std::int32_t& id : tensor.data<std::int32_t>()) id = std::int32_t(next++ * 7 % 10);
    }
    feeds[node->name()] = tensor;
  }
  return feeds;
}

Feeds trained_feeds(const Graph& graph) {
  Feeds feeds = step_feeds(graph);
  for (const auto& node : graph.nodes()) {
    if (!is_variable(*node)) continue;
    const Tensor& value = feeds.at(node->name());
    const bool matrix = value.shape().rank() > 1;
    (matrix ? Initializer::uniform(-0.1f, 0.1f) : Initializer::uniform(0.5f, 1.5f))
        .fill(value.data<float>(), value.shape(), 3, node->name());
  }
  return feeds;
}

std::vector<Root> roots_of(const Training& training) {
  std::vector<Root> roots = {{"loss", training.loss}};
  for (const VariableUpdate& update : training.updates) {
    const Gradient& gradient = update.contribution;
    roots.push_back({update.variable.name(), gradient.sparse() ? gradient.rows : gradient.dense});
  }
  return roots;
}

}  // namespace paceline::testing
