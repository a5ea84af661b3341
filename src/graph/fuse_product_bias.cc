#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

bool is_relu(const Node& node) {
  return node.op().name == "bias_activation" &&
         node.attributes().get<std::string>("activation") == "relu";
}

bool is_product(const Node& node) {
  return (node.op().name == "matmul" || node.op().name == "matmul_bfloat16") &&
         node.outputs()[0].dtype == DType::kFloat32;
}

// Returns the node that adds a bias to the product, and may apply a relu, if nothing else reads the
// product; otherwise null.
const Node* bias_of(const Node& product, const Readers& readers) {
  const Node* const reader = is_product(product) ? readers.only_reader(product.output(0)) : nullptr;
  const bool fits = reader != nullptr && (reader->op().name == "bias" || is_relu(*reader)) &&
                    reader->input(0) == product.output(0);
  return fits ? reader : nullptr;
}

void add_biased(GraphCopy& copy, const Node& product, const Node& bias) {
  const Attributes& own = product.attributes();
  const Value inputs[] = {copy.copy_of(product.input(0)), copy.copy_of(product.input(1)),
                          copy.copy_of(bias.input(1))};
  copy.copy_as(bias, "matmul_bias", inputs,
               {{"transpose_a", own.get<bool>("transpose_a")},
                {"transpose_b", own.get<bool>("transpose_b")},
                {"relu", is_relu(bias)}});
}

}  // namespace

RewrittenGraph with_biased_products(const RewriteSource& source) {
  if (!source.graph.ops().contains("matmul_bias")) return without_dead_nodes(source);
  const Readers readers(source);
  return GraphCopy::run(source, [&readers](GraphCopy& copy, const Node& node) {
    if (bias_of(node, readers) != nullptr) return;  // added with its bias
    const Node* const before = node.inputs().empty() ? nullptr : &node.input(0).node();
    if (before != nullptr && bias_of(*before, readers) == &node) {
      add_biased(copy, *before, node);
    } else {
      copy.copy(node);
    }
  });
}

}  // namespace paceline
