#include "train/initial_values.h"

#include "graph/initializer_of.h"
#include "kernels/naive/cast.h"

namespace paceline {
namespace {

Tensor as_type(const Tensor& values, DType dtype) {
  if (dtype == values.dtype()) return values;
  Tensor result(dtype, values.shape());
  cast_function(values.dtype(), dtype)(values.raw(), result.raw(), values.elements());
  return result;
}

}  // namespace

std::vector<VariableState> initial_values(const Graph& graph, std::span<const VariableSpec> specs,
                                          std::uint64_t seed) {
  std::vector<VariableState> states;
  for (std::size_t id = 0; id < specs.size(); ++id) {
    const VariableSpec& spec = specs[id];
    Tensor values(DType::kFloat32, spec.shape);
    initializer_of(graph.find(spec.name).node())
        .fill(values.data<float>(), spec.shape, seed, spec.name);
    states.push_back({VariableId(id), as_type(values, spec.dtype), {}});
  }
  return states;
}

}  // namespace paceline
