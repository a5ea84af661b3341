#include "train/initial_values.h"

#include "graph/initializer_of.h"
#include "paceline/error.h"

namespace paceline {

std::vector<VariableState> initial_values(const Graph& graph, std::span<const VariableSpec> specs,
                                          std::uint64_t seed) {
  std::vector<VariableState> states;
  for (std::size_t id = 0; id < specs.size(); ++id) {
    const VariableSpec& spec = specs[id];
    if (spec.dtype != DType::kFloat32) {
      throw Error(ErrorCode::kInvalidArgument, "[session] variable '" + spec.name + "' is " +
                                                   std::string(name_of(spec.dtype)) +
                                                   ": shared variables are float32");
    }
    VariableState state{VariableId(id), Tensor(spec.dtype, spec.shape), {}};
    initializer_of(graph.find(spec.name).node())
        .fill(state.value.data<float>(), spec.shape, seed, spec.name);
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace paceline
