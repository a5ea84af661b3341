// An object that looks at the numbers of a step.
#pragma once

#include <string_view>

#include "paceline/graph.h"
#include "paceline/tensor.h"

namespace paceline {

/// The executor's thread calls the observer in an observed step, with views into the host's memory
/// that are valid during the call.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  /// The step begins, or begins again (RepeatStep).
  virtual void begin_step() = 0;
  /// Gets the value of an input of the graph, before anything is computed from it.
  virtual void input(std::string_view name, const TensorView& value) = 0;
  /// True if the observer wants to see what this node computes; the node belongs to the plan's
  /// rewritten graph.
  virtual bool wants(const Node& node) const = 0;
  /// Gets the first output of a node that the observer wants.
  virtual void computed(const Node& node, const TensorView& value) = 0;
  /// True if the observer wants to see contributions.
  virtual bool wants_contributions() const = 0;
  /// Gets the contribution to a variable (VariableId) before it is clipped. A sparse contribution
  /// has only its own rows.
  virtual void contributed(int variable, const TensorView& value) = 0;
};

}  // namespace paceline
