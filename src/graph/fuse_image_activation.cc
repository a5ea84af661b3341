// A convolution or a batch normalisation and the relu or leaky relu that follows become one node,
// and so do the two gradients of a normalisation with its activation: the mask of the activation
// follows from x, so that nothing between the two is kept.
#include <algorithm>
#include <map>
#include <set>

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

constexpr std::string_view kActivated[] = {"conv2d", "batch_norm", "batch_norm_inference"};

struct FusedActivation {
  const Node* before = nullptr;  // of kActivated
  const Node* activation = nullptr;
  const Node* mask = nullptr;  // relu_grad or leaky_relu_grad; null: none is fused
  const Node* grad = nullptr;  // batch_norm_grad, which reads the mask
};

/// Returns the slope below zero, 0 for a relu. Only with a slope of 0 or more does the output have
/// the sign of x.
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
  // relu_grad reads y, leaky_relu_grad its input.
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

  // Returns the leaky relu of this value whose slope is that of `mask`; null when there is none.
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
  std::set<const Node*> inner_;  // are added with another node
};

}  // namespace

RewrittenGraph with_fused_image_activation(const RewriteSource& source) {
  if (!source.graph.ops().contains("batch_norm_activation")) return without_dead_nodes(source);
  const FusedActivations fused(source);
  return GraphCopy::run(source,
                        [&fused](GraphCopy& copy, const Node& node) { fused.visit(copy, node); });
}

}  // namespace paceline
