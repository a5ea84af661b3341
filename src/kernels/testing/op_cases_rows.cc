// Cases of the ops on rows of the last dimension: softmax, layer norm, one-hot, cumulative sums.
#include <fmt/format.h>

#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Inputs = std::span<const Value>;
using Outputs = std::vector<Value>;

void add_softmax_cases(OpCases& cases, const char* label, const Shape& shape, double range) {
  OpCase c;
  c.op = "softmax";
  c.label = label;
  c.inputs = {floats(shape, -range, range)};
  c.build = [](Graph&, Inputs in) -> Outputs { return {softmax(in[0])}; };
  // Rounding errors grow with the argument of an exponential.
  c.tolerance = 3e-7 * (3 + 2 * range);
  c.check_gradient = shape.elements() <= 100;
  cases.push_back(c);

  c.op = "softmax_grad";
  c.inputs = {floats(shape), floats(shape, 0, 1)};
  c.build = [](Graph& graph, Inputs in) -> Outputs {
    return {graph.apply("softmax_grad", {in[0], in[1]})};
  };
  c.tolerance = 2e-6;
  cases.push_back(std::move(c));
}

void add_layer_norm_cases(OpCases& cases, const char* label, const Shape& shape) {
  const Shape columns{shape[-1]};
  const Shape rows(shape.dims().first(shape.dims().size() - 1));
  OpCase c;
  c.op = "layer_norm";
  c.label = label;
  c.inputs = {floats(shape, -1, 3), floats(columns, 0.5, 2), floats(columns)};
  c.build = [](Graph&, Inputs in) -> Outputs { return {layer_norm(in[0], in[1], in[2], 1e-3)}; };
  c.tolerance = 2e-6;
  c.check_gradient = shape.elements() <= 100;
  cases.push_back(c);

  c.op = "layer_norm_grad";
  c.inputs = {floats(shape), floats(shape, -1, 3), floats(columns, 0.5, 2), floats(rows, 0.5, 1.5),
              floats(rows, 0.5, 2)};
  c.build = [](Graph& graph, Inputs in) -> Outputs {
    const Node& node = graph.add("layer_norm_grad", in);
    return {node.output(0), node.output(1), node.output(2)};
  };
  c.tolerance = 3e-6;
  cases.push_back(std::move(c));
}

void add_one_hot_cases(OpCases& cases) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 3}, Shape{0}}) {
    for (const std::int64_t depth : {1, 5}) {
      auto build = [depth](Graph&, Inputs in) -> Outputs { return {one_hot(in[0], depth)}; };
      cases.push_back(
          {"one_hot",
           fmt::format("{}_of_{}", shape.elements(), depth) + (shape.rank() == 0 ? "_scalar" : ""),
           {integers(shape, 0, depth)},
           build,
           0});
    }
  }
}

void add_cumulative_sum_cases(OpCases& cases) {
  struct {
    const char* label;
    Shape shape;
    int axis;
    bool large = false;
  } const all[] = {{"vector", {7}, 0},
                   {"rows", {3, 5}, -1},
                   {"columns", {3, 5}, 0},
                   {"middle", {2, 3, 4}, 1},
                   {"one", {1, 1}, 0},
                   {"empty", {0, 3}, 1},
                   {"none_along", {3, 0}, 1},
                   {"long", {200003}, 0, true},
                   {"long_rows", {5, 20011}, 1, true},
                   {"long_columns", {2011, 301}, 0, true}};
  for (const auto& shape : all) {
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        auto build = [=, axis = shape.axis](Graph&, Inputs in) -> Outputs {
          return {cumulative_sum(in[0], axis, exclusive, reverse)};
        };
        cases.push_back({"cumulative_sum",
                         fmt::format("{}{}{}", shape.label, exclusive ? "_exclusive" : "",
                                     reverse ? "_reverse" : ""),
                         {floats(shape.shape)},
                         build,
                         1e-6,
                         !shape.large});
      }
    }
  }
}

}  // namespace

void add_row_op_cases(OpCases& cases) {
  add_softmax_cases(cases, "vector", {5}, 1);
  add_softmax_cases(cases, "one", {3, 1}, 1);
  add_softmax_cases(cases, "deep", {2, 3, 7}, 5);
  add_softmax_cases(cases, "empty", {0, 4}, 1);
  add_softmax_cases(cases, "wide_range", {3, 11}, 30);
  add_softmax_cases(cases, "tiles", {67, 999}, 5);
  add_softmax_cases(cases, "long_rows", {2, 20011}, 5);
  add_layer_norm_cases(cases, "vector", {5});
  add_layer_norm_cases(cases, "deep", {2, 3, 7});
  add_layer_norm_cases(cases, "one_column", {3, 1});
  add_layer_norm_cases(cases, "empty", {0, 4});
  add_layer_norm_cases(cases, "tiles", {67, 999});
  add_layer_norm_cases(cases, "long_rows", {3, 20011});
  add_one_hot_cases(cases);
  add_cumulative_sum_cases(cases);
}

}  // namespace paceline
