#include <algorithm>
#include <array>

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 4> kActivations = {"relu", "leaky_relu", "sigmoid", "tanh"};

// Returns the activation that is the only reader of the bias node; null if there is none.
const Node* activation_of(const Node& bias, const Readers& readers) {
  const DType dtype = bias.outputs()[0].dtype;
  const bool float_bias =
      bias.op().name == "bias" && (dtype == DType::kFloat32 || dtype == DType::kFloat64);
  const Node* reader = float_bias ? readers.only_reader(bias.output(0)) : nullptr;
  const bool fits = reader != nullptr && reader->inputs().size() == 1 &&
                    std::ranges::find(kActivations, reader->op().name) != kActivations.end();
  return fits ? reader : nullptr;
}

void add_fused(GraphCopy& copy, const Node& bias, const Node& activation) {
  const Attributes& own = activation.attributes();
  const double slope = own.has("slope") ? own.get<double>("slope") : 0.0;
  copy.copy_as(activation, "bias_activation", copy.copies_of(bias.inputs()),
               {{"activation", activation.op().name}, {"slope", slope}});
}

}  // namespace

RewrittenGraph with_fused_bias(const RewriteSource& source) {
  if (!source.graph.ops().contains("bias_activation")) return without_dead_nodes(source);
  const Readers readers(source);
  return GraphCopy::run(source, [&readers](GraphCopy& copy, const Node& node) {
    if (activation_of(node, readers) != nullptr) return;  // added with its activation
    const bool has_input = node.inputs().size() == 1;
    const Node* before = has_input ? &node.input(0).node() : nullptr;
    if (before != nullptr && activation_of(*before, readers) == &node) {
      add_fused(copy, *before, node);
    } else {
      copy.copy(node);
    }
  });
}

}  // namespace paceline
