// From a loss to what a step trains: gradients, rules per group of variables, clipping.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "paceline/op.h"
#include "paceline/rule.h"
#include "paceline/schedule.h"

namespace paceline {

/// Variables whose scoped name begins with `prefix` (the longest matching group counts).
struct VariableGroup {
  std::string prefix;  // "layer1/": of scoped names; a group without variables is refused
  std::optional<Rule> rule = {};  // default: the rule given to minimize
  float weight_decay = 0;  // adds weight_decay·w to the gradient, ½·weight_decay·Σw² to the loss
  bool frozen = false;     // read, never updated
  /// Default: MinimizeOptions::average_decay.
  std::optional<float> average_decay = {};
  std::optional<Schedule> learning_rate = {};  // default: MinimizeOptions::learning_rate
  std::optional<float> clip_value = {};        // default: MinimizeOptions::clip_value
};

/// What minimize() may be told beside the rule.
struct MinimizeOptions {
  /// Gradients are scaled by min(1, clip_norm / global norm) (Pascanu et al., ICML 2013); 0: no
  /// clipping.
  float clip_norm = 0;
  Schedule learning_rate = {};             // a factor on the learning rate of every rule
  std::vector<VariableGroup> groups = {};  // what differs for some variables
  /// In [0, 1). Above 0 each variable has one slot more, "average", which begins as the variable
  /// and follows it: a ← decay·a + (1 − decay)·w after each update, of a sparse variable in the
  /// updated rows. Evaluate with it: Session::begin_evaluation(EvaluateWith::kAverages). (Polyak &
  /// Juditsky, SIAM J. Control and Optimization 30, 1992, in its exponential form.)
  float average_decay = 0;
  /// Each element of a gradient is brought into [−clip_value, clip_value], before the norm is
  /// taken; 0: no clipping by value.
  float clip_value = 0;
};

/// One variable's part in a train step.
struct VariableUpdate {
  Value variable;           // what is updated
  Gradient contribution;    // sparse: ids are unique and rows summed, see sum_rows; count below
  Value row_count;          // sparse only: int32 scalar, how many of the rows are valid
  Rule rule;                // how
  float weight_decay = 0;   // as in its VariableGroup
  float average_decay = 0;  // of its slot "average"; 0: it has none
  Schedule learning_rate;   // a factor on the rule's, by global step
};

/// What a train step computes and changes.
struct Training {
  Value loss;                           // with the weight-decay terms
  std::vector<VariableUpdate> updates;  // in the order in which variables were made
  Value global_norm;                    // of all contributions; only with clipping
  float clip_norm = 0;                  // as in MinimizeOptions
  /// The graph of the loss.
  Graph& graph() const { return loss.graph(); }
};

/// Adds the gradients of `loss` (a scalar) by all variables that it depends on and that are not
/// frozen; a variable that is trained must be float32. Throws kInvalidArgument when there are none,
/// on an op without gradient between, and on a group that no variable of the graph belongs to.
Training minimize(Value loss, const Rule& rule, const MinimizeOptions& options = {});

}  // namespace paceline
