#include <fmt/format.h>

#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::string entropy_label(std::int64_t rows, std::int64_t classes, double range, double smoothing) {
  return fmt::format("{}x{}_range{}{}", rows, classes, int(range), smoothing > 0 ? "_smooth" : "");
}

void add_entropy_cases(OpCases& cases, std::int64_t rows, std::int64_t classes, double range,
                       double smoothing = 0) {
  OpCase c;
  c.op = "softmax_cross_entropy";
  c.label = entropy_label(rows, classes, range, smoothing);
  c.inputs = {floats(Shape{rows, classes}, -range, range), integers(Shape{rows}, 0, classes)};
  c.build = [=](Graph&, std::span<const Value> in) {
    return std::vector<Value>{softmax_cross_entropy(in[0], in[1], smoothing)};
  };
  c.check_gradient = rows * classes <= 100;
  cases.push_back(c);

  c.op = "softmax_cross_entropy_grad";
  c.inputs.push_back(floats(Shape{rows}, range, range + 3));
  c.inputs.push_back(floats(Shape{rows}));
  c.build = [=](Graph& graph, std::span<const Value> in) {
    return std::vector<Value>{graph.apply(
        "softmax_cross_entropy_grad", {in[0], in[1], in[2], in[3]}, {{"smoothing", smoothing}})};
  };
  // Rounding errors grow with the argument of an exponential.
  c.tolerance = 3e-7 * (3 + 2 * range);
  cases.push_back(std::move(c));
}

void add_entropy_with_grad_cases(OpCases& cases, std::int64_t rows, std::int64_t classes,
                                 double range, double smoothing = 0) {
  OpCase c;
  c.op = "softmax_cross_entropy_with_grad";
  c.label = entropy_label(rows, classes, range, smoothing);
  c.inputs = {floats(Shape{rows, classes}, -range, range), integers(Shape{rows}, 0, classes),
              floats(Shape{rows})};
  c.build = [=](Graph& graph, std::span<const Value> in) {
    const Node& node = graph.add("softmax_cross_entropy_with_grad", in, {{"smoothing", smoothing}});
    std::vector<Value> values;
    for (int k = 0; k < int(node.outputs().size()); ++k) values.push_back(node.output(k));
    return values;
  };
  c.tolerance = 3e-7 * (3 + 2 * range);
  cases.push_back(c);
  c.label += "_biased";
  c.inputs.push_back(floats(Shape{classes}));
  cases.push_back(std::move(c));
}

void add_squared_cases(OpCases& cases, const Shape& shape, const char* label) {
  OpCase c;
  c.op = "mean_squared_error";
  c.label = label;
  c.inputs = {floats(shape), floats(shape)};
  c.build = [](Graph&, std::span<const Value> in) {
    return std::vector<Value>{mean_squared_error(in[0], in[1])};
  };
  c.check_gradient = shape.elements() <= 200;
  cases.push_back(c);

  c.op = "mean_squared_error_grad";
  c.inputs.push_back(floats(Shape{}));
  c.build = [](Graph& graph, std::span<const Value> in) {
    return std::vector<Value>{graph.apply("mean_squared_error_grad", {in[0], in[1], in[2]})};
  };
  cases.push_back(std::move(c));
}

}  // namespace

void add_loss_cases(OpCases& cases) {
  add_entropy_cases(cases, 1, 1, 1);
  add_entropy_cases(cases, 3, 5, 1);
  add_entropy_cases(cases, 0, 4, 1);
  add_entropy_cases(cases, 7, 11, 30);
  add_entropy_cases(cases, 37, 1031, 5);
  add_entropy_cases(cases, 3, 5, 1, 0.2);
  add_entropy_cases(cases, 37, 1031, 5, 0.1);
  add_entropy_with_grad_cases(cases, 1, 1, 1);
  add_entropy_with_grad_cases(cases, 7, 11, 3, 0.2);
  add_entropy_with_grad_cases(cases, 5, 2500, 5, 0.1);
  add_entropy_with_grad_cases(cases, 0, 4, 1);
  add_entropy_with_grad_cases(cases, 7, 11, 30);
  add_entropy_with_grad_cases(cases, 37, 1031, 5);
  add_entropy_with_grad_cases(cases, 5, 2500, 5);
  add_squared_cases(cases, Shape{}, "scalar");
  add_squared_cases(cases, Shape{3, 7}, "3x7");
  add_squared_cases(cases, Shape{2, 3, 1, 5}, "2x3x1x5");
  add_squared_cases(cases, Shape{257, 301}, "257x301");
}

}  // namespace paceline
