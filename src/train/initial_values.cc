#include "train/initial_values.h"

#include "graph/initializer_of.h"
#include "graph/sources.h"
#include "kernels/naive/cast.h"
#include "paceline/error.h"

namespace paceline {
namespace {

Tensor as_type(const Tensor& values, DType dtype) {
  if (dtype == values.dtype()) return values;
  Tensor result(dtype, values.shape());
  cast_function(values.dtype(), dtype)(values.raw(), result.raw(), values.elements());
  return result;
}

// Every variable of a store belongs to one of the graphs that the store was made for.
const Node* variable_of(std::span<const Graph* const> graphs, const std::string& name) {
  for (const Graph* graph : graphs) {
    for (const auto& node : graph->nodes()) {
      if (is_variable(*node) && node->name() == name) return node.get();
    }
  }
  throw Error(ErrorCode::kInternal, "[session] no graph has the variable '" + name + "'");
}

}  // namespace

std::vector<VariableState> initial_values(std::span<const Graph* const> graphs,
                                          std::span<const VariableSpec> specs, std::uint64_t seed) {
  std::vector<VariableState> states;
  for (std::size_t id = 0; id < specs.size(); ++id) {
    const VariableSpec& spec = specs[id];
    Tensor values(DType::kFloat32, spec.shape);
    initializer_of(*variable_of(graphs, spec.name))
        .fill(values.data<float>(), spec.shape, seed, spec.name);
    states.push_back({VariableId(id), as_type(values, spec.dtype), {}});
  }
  return states;
}

}  // namespace paceline
