#include <array>

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

// Casts each value once, for all products that read it: a layer's weights forwards and backwards.
class Bfloat16Casts {
 public:
  Value cast_of(GraphCopy& copy, Value old) {
    Value& cast = casts_[{old.node().id(), old.output()}];
    if (!cast) {
      const Value input[] = {copy.copy_of(old)};
      const Node& node = copy.graph().add("cast", input, {{"dtype", DType::kBFloat16}},
                                          old.node().name() + "/bfloat16");
      cast = node.output(0);
    }
    return cast;
  }

 private:
  std::map<std::pair<int, int>, Value> casts_;
};

bool is_float32_product(const Node& node, std::string_view op) {
  return node.op().name == op && node.outputs()[0].dtype == DType::kFloat32;
}

void add_product(GraphCopy& copy, Bfloat16Casts& casts, const Node& node) {
  const std::array operands = {casts.cast_of(copy, node.input(0)),
                               casts.cast_of(copy, node.input(1))};
  const Node& product =
      copy.graph().add("matmul_bfloat16", operands, node.attributes(), node.name());
  copy.replace(node.output(0), product.output(0));
}

// These round within their kernels: most operands are made there.
void add_lstm(GraphCopy& copy, const Node& node) {
  Attributes attributes = node.attributes();
  attributes.set("bfloat16_products", true);
  const Node& lstm =
      copy.graph().add(node.op().name, copy.copies_of(node.inputs()), attributes, node.name());
  for (int i = 0; i < int(node.outputs().size()); ++i) {
    copy.replace(node.output(i), lstm.output(i));
  }
}

}  // namespace

RewrittenGraph with_bfloat16_products(const RewriteSource& source) {
  if (!source.graph.ops().contains("matmul_bfloat16")) return without_dead_nodes(source);
  Bfloat16Casts casts;
  return GraphCopy::run(source, [&casts](GraphCopy& copy, const Node& node) {
    if (is_float32_product(node, "matmul")) {
      add_product(copy, casts, node);
    } else if (is_float32_product(node, "lstm") || is_float32_product(node, "lstm_grad")) {
      add_lstm(copy, node);
    } else {
      copy.copy(node);
    }
  });
}

}  // namespace paceline
