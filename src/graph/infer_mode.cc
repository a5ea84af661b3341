#include <algorithm>
#include <map>
#include <string>

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

/// The variables that follow the statistics of a batch_norm.
struct Moving {
  Value means, variances;
};

// Returns each batch_norm whose means and variances are both contributed to variables as they are.
std::map<const Node*, Moving> followed(const Graph& graph) {
  std::map<const Node*, Moving> found;
  for (const Graph::Contribution& each : graph.contributions()) {
    if (each.value.node().op().name != "batch_norm") continue;
    Moving& moving = found[&each.value.node()];
    if (each.value.output() == 1) moving.means = each.variable;
    if (each.value.output() == 2) moving.variances = each.variable;
  }
  std::erase_if(found,
                [](const auto& each) { return !each.second.means || !each.second.variances; });
  return found;
}

// Copies the variable now if it is not copied yet: no live node of the source may read it.
Value copy_of_variable(GraphCopy& copy, Value variable) {
  if (!copy.has(variable)) copy.copy(variable.node());
  return copy.copy_of(variable);
}

void add_inference(GraphCopy& copy, const Node& norm, const Moving& moving) {
  const Value means = copy_of_variable(copy, moving.means);
  const Value variances = copy_of_variable(copy, moving.variances);
  const Value inputs[] = {copy.copy_of(norm.input(0)), copy.copy_of(norm.input(1)),
                          copy.copy_of(norm.input(2)), means, variances};
  const Node& inference =
      copy.graph().add("batch_norm_inference", inputs, norm.attributes(), norm.name());
  copy.replace(norm.output(0), inference.output(0));
  copy.replace(norm.output(1), means);
  copy.replace(norm.output(2), variances);
}

}  // namespace

bool has_modes(const Graph& graph) {
  return !graph.contributions().empty() || std::ranges::any_of(graph.nodes(), [](const auto& node) {
    return node->op().name == "dropout";
  });
}

RewrittenGraph with_inference(const RewriteSource& source) {
  const std::map<const Node*, Moving> norms = followed(source.graph);
  return GraphCopy::run(source, [&norms](GraphCopy& copy, const Node& node) {
    const std::string& op = node.op().name;
    if (op == "dropout") {
      copy.replace(node.output(0), copy.copy_of(node.input(0)));
    } else if (const auto norm = norms.find(&node); norm != norms.end()) {
      add_inference(copy, node, norm->second);
    } else if (op == "batch_norm_grad" && norms.contains(&node.input(3).node())) {
      copy.copy_as(node, "batch_norm_inference_grad", copy.copies_of(node.inputs()),
                   node.attributes());
    } else if (node.outputs().empty() || !copy.has(node.output(0))) {  // else copied already
      copy.copy(node);
    }
  });
}

}  // namespace paceline
