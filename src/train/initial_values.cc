#include "train/initial_values.h"

namespace paceline {

std::vector<VariableState> initial_values(const Graph& graph, std::span<const VariableSpec> specs,
                                          std::uint64_t seed) {
  std::vector<VariableState> states;
  for (std::size_t id = 0; id < specs.size(); ++id) {
    const VariableSpec& spec = specs[id];
    VariableState state{VariableId(id), Tensor(DType::kFloat32, spec.shape), {}};
    graph.initializer(graph.find(spec.name))
        .fill(state.value.data<float>(), spec.shape, seed, spec.name);
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace paceline
