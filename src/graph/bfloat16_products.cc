// Models and variables stay float32. Matrix products read operands rounded to bfloat16 and sum in
// float32; each value is cast once per step. The kernels of LSTMs and convolutions round their
// operands themselves. If the processor multiplies bfloat16 no faster than float32, the rounded
// values are widened and multiplied in float32. Such a processor has no instructions for bfloat16,
// or is one of Intel's without AMX, which runs these instructions half as often as float32
// multiply-adds.
#include <algorithm>
#include <array>

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

// Casts each value once for all products that read it. For example, a layer's weights are read by
// the forward and the backward pass.
class Bfloat16Casts {
 public:
  /// If `widened`, values are cast to bfloat16 and back to float32.
  explicit Bfloat16Casts(bool widened) : widened_(widened) {}
  bool widened() const { return widened_; }

  Value cast_of(GraphCopy& copy, Value old) {
    Value& cast = casts_[{old.node().id(), old.output()}];
    if (!cast) {
      const std::string name = old.node().name() + "/bfloat16";
      cast = add(copy, copy.copy_of(old), DType::kBFloat16, name);
      if (widened_) cast = add(copy, cast, DType::kFloat32, name + "/float32");
    }
    return cast;
  }

 private:
  static Value add(GraphCopy& copy, Value x, DType dtype, const std::string& name) {
    return copy.graph().add("cast", {&x, 1}, {{"dtype", dtype}}, name).output(0);
  }

  const bool widened_;
  std::map<std::pair<int, int>, Value> casts_;
};

bool is_float32_product(const Node& node, std::string_view op) {
  return node.op().name == op && node.outputs()[0].dtype == DType::kFloat32;
}

void add_product(GraphCopy& copy, Bfloat16Casts& casts, const Node& node) {
  const std::array operands = {casts.cast_of(copy, node.input(0)),
                               casts.cast_of(copy, node.input(1))};
  const Node& product = copy.graph().add(casts.widened() ? "matmul" : "matmul_bfloat16", operands,
                                         node.attributes(), node.name());
  copy.replace(node.output(0), product.output(0));
}

// The kernels of these ops round their operands themselves: an lstm computes most of its operands
// inside the kernel, and a convolution rounds just the images that it multiplies next.
constexpr std::string_view kRounding[] = {"lstm", "lstm_grad", "conv2d", "conv2d_input_grad",
                                          "conv2d_weights_grad"};

bool rounds_within(const Node& node) {
  return std::ranges::any_of(kRounding,
                             [&](std::string_view op) { return is_float32_product(node, op); });
}

void add_rounding(GraphCopy& copy, const Node& node) {
  Attributes attributes = node.attributes();
  attributes.set("bfloat16_products", true);
  const Node& rounding =
      copy.graph().add(node.op().name, copy.copies_of(node.inputs()), attributes, node.name());
  for (int i = 0; i < int(node.outputs().size()); ++i) {
    copy.replace(node.output(i), rounding.output(i));
  }
}

}  // namespace

RewrittenGraph with_bfloat16_products(const RewriteSource& source, bool widened) {
  if (!source.graph.ops().contains("matmul_bfloat16")) return without_dead_nodes(source);
  Bfloat16Casts casts(widened);
  return GraphCopy::run(source, [&casts](GraphCopy& copy, const Node& node) {
    if (is_float32_product(node, "matmul")) {
      add_product(copy, casts, node);
    } else if (rounds_within(node)) {
      add_rounding(copy, node);
    } else {
      copy.copy(node);
    }
  });
}

}  // namespace paceline
