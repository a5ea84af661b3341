#include <fmt/format.h>

#include <map>
#include <string>

#include "exec/plan.h"
#include "graph/sources.h"
#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {
namespace {

// The index of each variable in the list of specs, by name.
using SpecIndex = std::map<std::string, std::size_t, std::less<>>;

void add_variable(const Node& node, std::vector<VariableSpec>& specs, SpecIndex& index) {
  const ValueType& type = node.outputs()[0];
  const auto [found, is_new] = index.emplace(node.name(), specs.size());
  if (is_new) {
    VariableSpec spec;
    spec.name = node.name();
    spec.dtype = type.dtype;
    spec.shape = type.shape;
    spec.trained = false;
    specs.push_back(std::move(spec));
    return;
  }
  const VariableSpec& known = specs[found->second];
  const ValueType before{known.dtype, known.shape};
  if (before == type) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[variable {}] {} in one graph, {} in another", node.name(), before.str(),
                          type.str()));
}

void add_update(const VariableUpdate& update, std::vector<VariableSpec>& specs,
                const SpecIndex& index) {
  const std::string& name = update.variable.node().name();
  const auto found = index.find(name);
  if (found == index.end()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[variable {}] trained, but in none of the graphs", name));
  }
  VariableSpec* spec = &specs[found->second];
  if (spec->trained) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[variable {}] updated by two trainings: freeze it in one of them "
                            "(VariableGroup)",
                            name));
  }
  spec->rule = update.rule;
  spec->weight_decay = update.weight_decay;
  spec->average_decay = update.average_decay;
  spec->average_ramp = update.average_ramp;
  spec->trained = true;
  spec->sparse = update.contribution.sparse();
}

}  // namespace

std::vector<VariableSpec> variable_specs(std::span<const Graph* const> graphs,
                                         std::span<const Training> trainings) {
  std::vector<VariableSpec> specs;
  SpecIndex index;
  for (const Graph* graph : graphs) {
    for (const auto& node : graph->nodes()) {
      if (is_variable(*node)) add_variable(*node, specs, index);
    }
  }
  for (const Training& training : trainings) {
    for (const VariableUpdate& update : training.updates) add_update(update, specs, index);
  }
  return specs;
}

}  // namespace paceline
