#include <fmt/format.h>

#include <algorithm>

#include "exec/plan.h"
#include "graph/sources.h"
#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {
namespace {

void add_variable(const Node& node, std::vector<VariableSpec>& specs) {
  const ValueType& type = node.outputs()[0];
  const auto known = std::ranges::find(specs, node.name(), &VariableSpec::name);
  if (known == specs.end()) {
    VariableSpec spec;
    spec.name = node.name();
    spec.dtype = type.dtype;
    spec.shape = type.shape;
    spec.trained = false;
    specs.push_back(std::move(spec));
    return;
  }
  const ValueType before{known->dtype, known->shape};
  if (before == type) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[variable {}] {} in one graph, {} in another", node.name(), before.str(),
                          type.str()));
}

void add_update(const VariableUpdate& update, std::vector<VariableSpec>& specs) {
  const std::string& name = update.variable.node().name();
  const auto spec = std::ranges::find(specs, name, &VariableSpec::name);
  if (spec == specs.end()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[variable {}] trained, but in none of the graphs", name));
  }
  if (spec->trained) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[variable {}] updated by two trainings: freeze it in one of them "
                            "(VariableGroup)",
                            name));
  }
  spec->rule = update.rule;
  spec->weight_decay = update.weight_decay;
  spec->average_decay = update.average_decay;
  spec->trained = true;
  spec->sparse = update.contribution.sparse();
}

}  // namespace

std::vector<VariableSpec> variable_specs(std::span<const Graph* const> graphs,
                                         std::span<const Training> trainings) {
  std::vector<VariableSpec> specs;
  for (const Graph* graph : graphs) {
    for (const auto& node : graph->nodes()) {
      if (is_variable(*node)) add_variable(*node, specs);
    }
  }
  for (const Training& training : trainings) {
    for (const VariableUpdate& update : training.updates) add_update(update, specs);
  }
  return specs;
}

}  // namespace paceline
