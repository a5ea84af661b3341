#include "train/initial_values.h"

#include <string_view>
#include <unordered_map>

#include "graph/initializer_of.h"
#include "graph/sources.h"
#include "kernels/naive/cast.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using VariableNodes = std::unordered_map<std::string_view, const Node*>;

// Returns the variables by name. Graphs that share a variable agree on its initializer.
VariableNodes variables_of(std::span<const Graph* const> graphs) {
  VariableNodes variables;
  for (const Graph* graph : graphs) {
    for (const auto& node : graph->nodes()) {
      if (is_variable(*node)) variables.emplace(node->name(), node.get());
    }
  }
  return variables;
}

// Every variable of a store belongs to one of the graphs that the store was made for.
const Node& variable_of(const VariableNodes& variables, const std::string& name) {
  const auto found = variables.find(name);
  if (found != variables.end()) return *found->second;
  throw Error(ErrorCode::kInternal, "[session] no graph has the variable '" + name + "'");
}

}  // namespace

Tensor as_type(const Tensor& values, DType dtype) {
  if (dtype == values.dtype()) return values;
  Tensor result(dtype, values.shape());
  cast_function(values.dtype(), dtype)(values.raw(), result.raw(), values.elements());
  return result;
}

std::vector<VariableState> initial_values(std::span<const Graph* const> graphs,
                                          std::span<const VariableSpec> specs, std::uint64_t seed) {
  const VariableNodes variables = variables_of(graphs);
  std::vector<VariableState> states;
  for (std::size_t id = 0; id < specs.size(); ++id) {
    const VariableSpec& spec = specs[id];
    Tensor values(DType::kFloat32, spec.shape);
    initializer_of(variable_of(variables, spec.name))
        .fill(values.data<float>(), spec.shape, seed, spec.name);
    states.push_back({VariableId(id), as_type(values, spec.dtype), {}});
  }
  return states;
}

}  // namespace paceline
