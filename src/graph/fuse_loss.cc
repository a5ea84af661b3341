// The kernels of a softmax cross-entropy and of its gradient both read all logits and compute all
// exponentials. As one node they do so once, row by row, and the gradient may take the logits'
// memory.
#include <algorithm>
#include <map>

#include "graph/passes.h"
#include "graph/sources.h"
#include "paceline/op.h"

namespace paceline {
namespace {

struct FusedLoss {
  const Node* loss = nullptr;
  const Node* grad = nullptr;
  const Node* bias = nullptr;      // makes the logits; null if no bias node does
  const Node* bias_sum = nullptr;  // the gradient of its biases; may be null
};

bool is_loss_gradient(const Node& node) { return node.op().name == "softmax_cross_entropy_grad"; }

bool is_sum_of_rows(const Node& node) {
  using Axes = std::vector<std::int64_t>;
  return node.op().name == "reduce_sum" && node.attributes().get<Axes>("axes") == Axes{0} &&
         !node.attributes().get<bool>("keep");
}

// The fused node replaces the loss, which stands before its gradient. So the gradient's input 3
// must be a constant, of which a copy can be added before the loss.
bool can_fuse(const Node& loss, const Node& grad, const Readers& readers) {
  const bool matches = loss.op().name == "softmax_cross_entropy" &&
                       grad.input(0) == loss.input(0) && grad.input(1) == loss.input(1) &&
                       grad.input(2) == loss.output(1);
  return matches && is_constant(grad.input(3).node()) &&
         loss.output(0).dtype() == DType::kFloat32 &&
         readers.only_reader(loss.output(1)) == &grad &&
         readers.of(loss.input(0)) == std::set<const Node*>{&loss, &grad};
}

// The losses to fuse, by their node, and the nodes that become part of a fused loss.
struct FusedLosses {
  std::map<const Node*, FusedLoss> by_loss;
  std::set<const Node*> inner;
};

void add(FusedLosses& losses, FusedLoss fused, const Readers& readers) {
  const Node& logits = fused.loss->input(0).node();
  if (logits.op().name == "bias") {
    fused.bias = &logits;
    losses.inner.insert(&logits);
    for (const Node* reader : readers.of(fused.grad->output(0))) {
      if (reader != nullptr && is_sum_of_rows(*reader)) fused.bias_sum = reader;
    }
  }
  losses.inner.insert(fused.grad);
  if (fused.bias_sum != nullptr) losses.inner.insert(fused.bias_sum);
  losses.by_loss[fused.loss] = fused;
}

FusedLosses find_losses(const RewriteSource& source) {
  const Readers readers(source);
  const std::vector<bool> live = source.live();
  FusedLosses losses;
  for (const auto& node : source.graph.nodes()) {
    if (!live[std::size_t(node->id())] || !is_loss_gradient(*node)) continue;
    const Node& loss = node->input(2).node();
    if (can_fuse(loss, *node, readers)) add(losses, {&loss, node.get()}, readers);
  }
  return losses;
}

void add_fused(GraphCopy& copy, const FusedLoss& fused) {
  const Node& gradient = fused.grad->input(3).node();
  const Value logits = fused.bias == nullptr ? fused.loss->input(0) : fused.bias->input(0);
  const Node& constant = copy.graph().add("constant", {}, gradient.attributes());
  std::vector<Value> inputs = {copy.copy_of(logits), copy.copy_of(fused.loss->input(1)),
                               constant.output(0)};
  if (fused.bias != nullptr) inputs.push_back(copy.copy_of(fused.bias->input(1)));
  const Node& both = copy.graph().add("softmax_cross_entropy_with_grad", inputs,
                                      fused.loss->attributes(), fused.loss->name());
  copy.replace(fused.loss->output(0), both.output(1));
  copy.replace(fused.grad->output(0), both.output(0));
  if (fused.bias_sum != nullptr) copy.replace(fused.bias_sum->output(0), both.output(2));
}

}  // namespace

bool has_loss_gradient(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const auto& node) { return is_loss_gradient(*node); });
}

RewrittenGraph with_fused_loss(const RewriteSource& source) {
  if (!source.graph.ops().contains("softmax_cross_entropy_with_grad")) {
    return without_dead_nodes(source);
  }
  const FusedLosses losses = find_losses(source);
  return GraphCopy::run(source, [&losses](GraphCopy& copy, const Node& node) {
    if (losses.inner.contains(&node)) return;
    const auto fused = losses.by_loss.find(&node);
    if (fused == losses.by_loss.end()) return copy.copy(node);
    add_fused(copy, fused->second);
  });
}

}  // namespace paceline
