// If the only reader of a convolution is a batch normalisation with given statistics, the two
// become one convolution. With s = gains / √(variances + epsilon), its weights are weights·s and
// its biases (biases − means)·s + offsets.
#include <set>

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

class FoldedNorms {
 public:
  explicit FoldedNorms(const RewriteSource& source) {
    const Readers readers(source);
    const std::vector<bool> live = source.live();
    for (const auto& node : source.graph.nodes()) {
      if (!live[std::size_t(node->id())] || node->op().name != "batch_norm_inference") continue;
      const Node& conv = node->input(0).node();
      const bool alone = readers.only_reader(conv.output(0)) == node.get();
      if (conv.op().name == "conv2d" && alone) folded_.insert(&conv);
    }
  }

  void visit(GraphCopy& copy, const Node& node) const {
    if (folded_.contains(&node)) return;  // added with its normalisation
    const bool folds =
        node.op().name == "batch_norm_inference" && folded_.contains(&node.input(0).node());
    folds ? add_folded(copy, node.input(0).node(), node) : copy.copy(node);
  }

 private:
  static void add_folded(GraphCopy& copy, const Node& conv, const Node& norm) {
    const auto op = [&](std::string_view name, std::vector<Value> inputs) {
      return copy.graph().add(name, inputs, {}, norm.name() + "/folded").output(0);
    };
    const Value gains = copy.copy_of(norm.input(1)), offsets = copy.copy_of(norm.input(2));
    const Value means = copy.copy_of(norm.input(3)), variances = copy.copy_of(norm.input(4));
    const Value factors =
        op("div", {gains, op("sqrt", {op("add", {variances, epsilon_of(copy, norm)})})});
    const Value distances =
        conv.inputs().size() == 3
            ? op("sub", {copy.copy_of(conv.input(2)), means})
            : copy.graph()
                  .add("scale", {&means, 1}, {{"factor", -1.0}}, norm.name() + "/folded")
                  .output(0);
    const Value weights = copy.copy_of(conv.input(1));
    const std::vector<std::int64_t> column = {weights.shape()[0], 1, 1, 1};
    const Value of_filters =
        copy.graph()
            .add("reshape", {&factors, 1}, {{"shape", column}}, norm.name() + "/folded")
            .output(0);
    const std::vector<Value> inputs = {copy.copy_of(conv.input(0)),
                                       op("mul", {weights, of_filters}),
                                       op("add", {op("mul", {distances, factors}), offsets})};
    const Node& both = copy.graph().add("conv2d", inputs, conv.attributes(), norm.name());
    copy.replace(norm.output(0), both.output(0));
  }

  static Value epsilon_of(GraphCopy& copy, const Node& norm) {
    const double epsilon = norm.attributes().get<double>("epsilon");
    const bool wide = norm.outputs()[0].dtype == DType::kFloat64;
    return copy.graph().constant(wide ? Tensor::scalar(epsilon) : Tensor::scalar(float(epsilon)));
  }

  std::set<const Node*> folded_;
};

}  // namespace

RewrittenGraph with_folded_batch_norm(const RewriteSource& source) {
  const FoldedNorms folded(source);
  return GraphCopy::run(source,
                        [&folded](GraphCopy& copy, const Node& node) { folded.visit(copy, node); });
}

}  // namespace paceline
