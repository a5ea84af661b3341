// The cases of every op for the conformance tests, which compare a fast kernel with the naive one,
// and a gradient with central differences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "paceline/graph.h"

namespace paceline {

/// How an input of a case is filled.
struct CaseInput {
  ValueType type;
  double low = -1, high = 1;   // uniform; integers in [low, high)
  bool differentiable = true;  // false for ids, labels, and inputs whose gradient is not checked
  /// If it is not empty, the input has these values instead.
  std::vector<double> values = {};
};

/// Describes an input of float32 values (float64 in the gradient check), uniform in [low, high).
CaseInput floats(const Shape& shape, double low = -1, double high = 1);
/// Describes an input of int32 values in [low, high), without a gradient.
CaseInput integers(const Shape& shape, std::int64_t low, std::int64_t high);

struct OpCase {
  std::string op;     // the op that is tested
  std::string label;  // "3x5", letters, digits and underscores: part of the test's name
  std::vector<CaseInput> inputs;
  /// Adds the op (once, and no other op) and returns the values to compare.
  std::function<std::vector<Value>(Graph& graph, std::span<const Value> inputs)> build;
  double tolerance = 1e-6;     // limit of ‖fast − naive‖ ÷ ‖naive‖ per output
  bool check_gradient = true;  // false if a case is too large for central differences
};

using OpCases = std::vector<OpCase>;

// Each family has one function, in op_cases_<family>.cc; op_cases.cc calls them all.
void add_elementwise_cases(OpCases& cases);
void add_layout_cases(OpCases& cases);
void add_reduce_cases(OpCases& cases);
void add_row_op_cases(OpCases& cases);

void add_matmul_cases(OpCases& cases);
void add_loss_cases(OpCases& cases);
void add_conv2d_cases(OpCases& cases);
void add_pool2d_cases(OpCases& cases);
void add_image_norm_cases(OpCases& cases);
void add_lstm_cases(OpCases& cases);
void add_embedding_cases(OpCases& cases);
void add_norm_cases(OpCases& cases);
void add_dropout_cases(OpCases& cases);
void add_random_cases(OpCases& cases);
void add_metric_cases(OpCases& cases);

/// Returns the cases of all families.
OpCases all_op_cases();

/// Returns a tensor with the input's type and values (float64 instead of float32 if `in_double`).
Tensor fill(const CaseInput& input, bool in_double, std::uint64_t stream);

}  // namespace paceline
