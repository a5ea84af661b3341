// Computes gradients of a loss, and makes trainings from them, with rules for groups of variables
// and with clipping.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "paceline/graph.h"
#include "paceline/op.h"
#include "paceline/rule.h"

namespace paceline {

/// The derivatives of `loss` by each of `values`, in their order and with their types and shapes.
/// The values can be inputs, variables or anything between. `loss` is a scalar of float32 or
/// float64. The nodes are added to the graph of the loss. They can be fetched, and they can be part
/// of another loss if the ops in them have gradients. The gradient by a table in which
/// embedding_lookup looks up rows is as large as the table. Throws kInvalidArgument when the loss
/// is no such scalar, when a value belongs to another graph or has no floating-point type, when the
/// loss does not depend on a value, and when an op between the value and the loss has no gradient.
std::vector<Value> gradients(Value loss, const std::vector<Value>& values);

/// Options for the variables whose scoped names begin with `prefix`. If several groups match a
/// variable, the group with the longest prefix counts.
struct VariableGroup {
  std::string prefix;             // such as "layer1/"; a group without variables is refused
  std::optional<Rule> rule = {};  // default: the rule given to minimize
  /// Adds weight_decay·w to the gradient of w, and ½·weight_decay·Σw² to the loss.
  float weight_decay = 0;
  bool frozen = false;  // read, never updated
  /// The decay of the moving average; by default MinimizeOptions::average_decay.
  std::optional<float> average_decay = {};
  std::optional<Schedule> learning_rate = {};  // default: MinimizeOptions::learning_rate
  std::optional<float> clip_value = {};        // default: MinimizeOptions::clip_value
};

/// The options of minimize().
struct MinimizeOptions {
  /// Gradients are scaled by min(1, clip_norm / global norm) (Pascanu et al., ICML 2013). 0 turns
  /// clipping off.
  float clip_norm = 0;
  Schedule learning_rate = {};             // a factor on the learning rate of every rule
  std::vector<VariableGroup> groups = {};  // the options that differ for some variables
  /// The decay of moving averages, in [0, 1). 0: there are no averages. Above 0, each variable has
  /// one slot more, "average", whose initial value is that of the variable. After each update of
  /// the variable, a ← decay·a + (1 − decay)·w; for a sparse variable, only in the updated rows.
  /// Session::begin_evaluation(EvaluateWith::kAverages) evaluates with the averages. (Polyak &
  /// Juditsky, SIAM J. Control and Optimization 30, 1992, in its exponential form.)
  float average_decay = 0;
  /// True: the decay at update n of a variable, from 1, is at most (1 + n) / (10 + n), so that the
  /// average soon forgets the initial value (`num_updates` of TensorFlow's
  /// ExponentialMovingAverage). The variable then counts its updates in a slot "t".
  bool average_ramp = false;
  /// Each element of a gradient is clipped to [−clip_value, clip_value] before the norm is taken;
  /// 0: no clipping by value.
  float clip_value = 0;
};

/// One variable's part in a train step.
struct VariableUpdate {
  Value variable;  // the variable that is updated
  /// The gradient that the rule takes. If the gradient is sparse, rows of the same id have been
  /// summed, so that no id occurs twice.
  Gradient contribution;
  Value row_count;         // sparse only: the number of valid rows, an int32 scalar
  Rule rule;               // the rule of the update
  float weight_decay = 0;  // as in its VariableGroup
  /// The decay of the variable's slot "average"; 0: there is no such slot.
  float average_decay = 0;
  Schedule learning_rate;     // a factor on the rule's learning rate, by global step
  bool average_ramp = false;  // as in MinimizeOptions
};

/// The values that a train step computes, and the variables that it changes.
struct Training {
  Value loss;                           // with the weight-decay terms
  std::vector<VariableUpdate> updates;  // in the order in which variables were made
  Value global_norm;                    // the norm of all contributions; set only with clipping
  /// True when a session leaves out contributions whose norm is not finite (OnNan::kSkip). In that
  /// case `global_norm` is set even without clipping.
  bool skip_not_finite = false;
  float clip_norm = 0;  // as in MinimizeOptions
  /// The graph of the loss.
  Graph& graph() const { return loss.graph(); }
};

/// Adds to the graph the gradients of `loss`, a scalar, by all variables that the loss depends on
/// and that are not frozen. The updates that Graph::contribute() asks for follow the updates by
/// gradients. A variable that is trained must be float32. Throws kInvalidArgument when there are no
/// such variables, when an op between a variable and the loss has no gradient, and on a group that
/// no variable of the graph belongs to.
Training minimize(Value loss, const Rule& rule, const MinimizeOptions& options = {});

/// Makes a training from gradients that are already values of the graph. Each element of
/// `gradients` has the variable, the contribution and, for a sparse contribution, row_count; the
/// rule and the options give the other fields. `loss` is taken as it is, without terms of weight
/// decay. Throws kInvalidArgument as minimize does.
Training train_with(Value loss, std::vector<VariableUpdate> gradients, const Rule& rule,
                    const MinimizeOptions& options = {});

}  // namespace paceline
