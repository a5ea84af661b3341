// A convolution or a batch normalisation becomes one node with the relu or leaky relu that follows.
// The gradients of a batch normalisation and of its activation become one node too. This node
// computes the activation's mask from x, the input of the normalisation, so the values between the
// two need not be kept.
#include <algorithm>
#include <map>
#include <set>

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

constexpr std::string_view kActivated[] = {"conv2d", "batch_norm", "batch_norm_inference"};

struct FusedActivation {
  const Node* before = nullptr;  // an op of kActivated
  const Node* activation = nullptr;
  const Node* mask = nullptr;  // relu_grad or leaky_relu_grad; null if none is fused
  const Node* grad = nullptr;  // batch_norm_grad, which reads the mask
};

/// Returns the slope below zero, which is 0 for a relu. An activation is fused only if its slope is
/// 0 or more: then its output is positive exactly where its input is.
double slope_of(const Node& activation) {
  return activation.op().name == "relu" ? 0 : activation.attributes().get<double>("slope");
}

bool is_activation(const Node& node) {
  return node.op().name == "relu" || (node.op().name == "leaky_relu" && slope_of(node) >= 0);
}

class FusedActivations {
 public:
  explicit FusedActivations(const RewriteSource& source) : readers_(source) {
    const std::vector<bool> live = source.live();
    const auto is_live = [&](const auto& node) { return live[std::size_t(node->id())]; };
    for (const auto& node : source.graph.nodes()) {
      if (is_live(node) && node->op().name == "batch_norm_grad") add_gradient(*node);
    }
    for (const auto& node : source.graph.nodes()) {
      if (is_live(node) && is_activation(*node)) add_forward(*node);
    }
  }

  void visit(GraphCopy& copy, const Node& node) const {
    if (inner_.contains(&node)) return;
    if (const auto fused = by_before_.find(&node); fused != by_before_.end()) {
      return add_forward_node(copy, fused->second);
    }
    if (const auto fused = by_grad_.find(&node); fused != by_grad_.end()) {
      return add_gradient_node(copy, fused->second);
    }
    copy.copy(node);
  }

 private:
  // relu_grad reads the output of the relu, leaky_relu_grad the input of the leaky relu.
  void add_gradient(const Node& grad) {
    const Node& mask = grad.input(0).node();
    const bool relu = mask.op().name == "relu_grad";
    if (!relu && mask.op().name != "leaky_relu_grad") return;
    const Node* activation = relu ? &mask.input(1).node() : activation_of(mask.input(1), mask);
    if (activation == nullptr || !is_activation(*activation)) return;
    const Node& norm = activation->input(0).node();
    const bool same_norm = norm.op().name == "batch_norm" && grad.input(1) == norm.input(0) &&
                           grad.input(2) == norm.input(1) && grad.input(3) == norm.output(1) &&
                           grad.input(4) == norm.output(2);
    if (!same_norm || readers_.only_reader(mask.output(0)) != &grad) return;
    std::set<const Node*> readers = readers_.of(norm.output(0));
    readers.erase(&mask);
    if (readers != std::set<const Node*>{activation}) return;
    const FusedActivation fused{&norm, activation, &mask, &grad};
    by_before_[&norm] = by_grad_[&grad] = fused;
    inner_.insert({activation, &mask});
  }

  // Returns the leaky relu that reads `value` and has the slope of `mask`; null if there is none.
  const Node* activation_of(const Value& value, const Node& mask) const {
    for (const Node* reader : readers_.of(value)) {
      const bool leaky = reader != nullptr && reader->op().name == "leaky_relu";
      if (leaky && slope_of(*reader) == slope_of(mask)) return reader;
    }
    return nullptr;
  }

  void add_forward(const Node& activation) {
    const Node& before = activation.input(0).node();
    if (std::ranges::find(kActivated, before.op().name) == std::end(kActivated) ||
        activation.input(0).output() != 0 || inner_.contains(&activation))
      return;
    if (readers_.only_reader(before.output(0)) != &activation) return;
    by_before_[&before] = {&before, &activation};
    inner_.insert(&activation);
  }

  static void add_forward_node(GraphCopy& copy, const FusedActivation& fused) {
    const Node& before = *fused.before;
    Attributes attributes = before.attributes();
    attributes.set("slope", slope_of(*fused.activation));
    attributes.set("activation", fused.activation->op().name);
    const Node& both =
        copy.graph().add(before.op().name + "_activation", copy.copies_of(before.inputs()),
                         attributes, fused.activation->name());
    copy.replace(fused.activation->output(0), both.output(0));
    for (int k = 1; k < int(before.outputs().size()); ++k) {
      copy.replace(before.output(k), both.output(k));
    }
  }

  static void add_gradient_node(GraphCopy& copy, const FusedActivation& fused) {
    std::vector<Value> inputs = copy.copies_of(fused.grad->inputs().subspan(1));
    inputs.insert(inputs.begin(), copy.copy_of(fused.mask->input(0)));
    inputs.push_back(copy.copy_of(fused.before->input(2)));
    Attributes attributes = fused.grad->attributes();
    attributes.set("slope", slope_of(*fused.activation));
    const Node& both =
        copy.graph().add("batch_norm_activation_grad", inputs, attributes, fused.grad->name());
    for (int k = 0; k < int(both.outputs().size()); ++k) {
      copy.replace(fused.grad->output(k), both.output(k));
    }
  }

  const Readers readers_;
  std::map<const Node*, FusedActivation> by_before_, by_grad_;
  std::set<const Node*> inner_;  // nodes that become part of a fused node
};

}  // namespace

RewrittenGraph with_fused_image_activation(const RewriteSource& source) {
  if (!source.graph.ops().contains("batch_norm_activation")) return without_dead_nodes(source);
  const FusedActivations fused(source);
  return GraphCopy::run(source,
                        [&fused](GraphCopy& copy, const Node& node) { fused.visit(copy, node); });
}

}  // namespace paceline
