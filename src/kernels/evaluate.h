// Runs a graph node by node, for tests and for folding constants: without a plan, and keeping every
// value.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "kernels/device.h"

namespace paceline {

/// Values of inputs, variables and locals by node name.
using Feeds = std::map<std::string, Tensor, std::less<>>;

/// Computes `roots` and the nodes that they need. Throws kInvalidArgument if a source is not fed,
/// or its tensor has another type.
std::vector<Tensor> evaluate_graph(std::span<const Value> roots, const Feeds& feeds, Device& device,
                                   const StepIdentity& step = {});

/// Computes the outputs of one node from its inputs.
std::vector<Tensor> evaluate_node(const Node& node, std::span<const Tensor> inputs, Device& device,
                                  const StepIdentity& step = {});

/// Folds constants with the kernels of `device`, which must outlive this object.
class KernelConstantEvaluator : public ConstantEvaluator {
 public:
  explicit KernelConstantEvaluator(Device& device) : device_(device) {}
  std::vector<Tensor> evaluate(const Node& node, std::span<const Tensor> inputs) override {
    return evaluate_node(node, inputs, device_);
  }

 private:
  Device& device_;
};

}  // namespace paceline
