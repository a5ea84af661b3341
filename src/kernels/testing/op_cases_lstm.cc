#include <fmt/format.h>

#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

struct LstmSizes {
  std::int64_t steps, batch, inputs, hidden;
  std::string str() const { return fmt::format("t{}_n{}_i{}_h{}", steps, batch, inputs, hidden); }
};

std::vector<CaseInput> lstm_inputs(const LstmSizes& s) {
  const Shape state{s.batch, s.hidden};
  return {floats(Shape{s.steps, s.batch, s.inputs}), floats(state), floats(state),
          floats(Shape{s.inputs + s.hidden, 4 * s.hidden}, -0.5, 0.5), floats(Shape{4 * s.hidden})};
}

// Rounds the operands of products to bfloat16. Before that rounding, kernels may differ by one
// rounding of float32, and after it by one of bfloat16; so small differences cannot check the
// gradient.
void round_products(OpCase& c, Attributes& attributes) {
  c.label += "_bfloat16";
  c.tolerance = 5e-4;
  c.check_gradient = false;
  attributes.set("bfloat16_products", true);
}

// Adds a case that compares the outputs with the numbers in `outputs`; the other outputs have no
// gradient.
void add_forward(OpCases& cases, const LstmSizes& s, const std::vector<int>& outputs,
                 double forget_bias, bool rounds = false) {
  OpCase c;
  c.op = "lstm";
  c.label = s.str();
  for (const int output : outputs) c.label += fmt::format("_{}", output);
  c.inputs = lstm_inputs(s);
  Attributes attributes = {{"forget_bias", forget_bias}};
  c.check_gradient = outputs.size() <= 3 && s.steps * s.batch * s.hidden <= 100;
  if (rounds) round_products(c, attributes);
  c.build = [outputs, attributes](Graph& graph, std::span<const Value> in) {
    const Node& node = graph.add("lstm", in, attributes);
    std::vector<Value> values;
    values.reserve(outputs.size());
    for (const int output : outputs) values.push_back(node.output(output));
    return values;
  };
  cases.push_back(std::move(c));
}

void add_backward(OpCases& cases, const LstmSizes& s, bool outputs, bool h, bool c_state,
                  bool rounds = false) {
  const Shape state{s.batch, s.hidden}, sequence{s.steps, s.batch, s.hidden};
  OpCase c;
  c.op = "lstm_grad";
  c.label = fmt::format("{}{}{}{}", s.str(), outputs ? "_outputs" : "", h ? "_h" : "",
                        c_state ? "_c" : "");
  c.inputs = lstm_inputs(s);
  c.inputs.back() = floats(sequence);
  c.inputs.push_back(floats(Shape{s.steps, s.batch, 4 * s.hidden}, 0, 1));
  c.inputs.push_back(floats(sequence));
  if (outputs) c.inputs.push_back(floats(sequence));
  if (h) c.inputs.push_back(floats(state));
  if (c_state) c.inputs.push_back(floats(state));
  Attributes attributes = {{"has_outputs", outputs}, {"has_h", h}, {"has_c", c_state}};
  if (rounds) round_products(c, attributes);
  c.build = [attributes](Graph& graph, std::span<const Value> in) {
    const Node& node = graph.add("lstm_grad", in, attributes);
    std::vector<Value> values;
    values.reserve(5);
    for (int i = 0; i < 5; ++i) values.push_back(node.output(i));
    return values;
  };
  cases.push_back(std::move(c));
}

}  // namespace

void add_lstm_cases(OpCases& cases) {
  add_forward(cases, {1, 1, 1, 1}, {0, 1, 2}, 0);
  add_forward(cases, {3, 2, 3, 5}, {0, 1, 2}, 0);
  add_forward(cases, {3, 2, 3, 5}, {0}, 1);
  add_forward(cases, {2, 3, 4, 2}, {1}, 0);
  add_forward(cases, {2, 3, 4, 2}, {2}, 0.5);
  add_forward(cases, {2, 0, 3, 4}, {0, 1, 2}, 0);
  add_forward(cases, {2, 2, 0, 3}, {0, 1, 2}, 0);
  add_forward(cases, {5, 7, 21, 19}, {0, 1, 2, 3, 4}, 0);
  add_forward(cases, {4, 20, 130, 130}, {0, 1, 2, 3, 4}, 0);
  add_forward(cases, {3, 26, 30, 200}, {0, 1, 2, 3, 4}, 0);
  add_backward(cases, {1, 1, 1, 1}, true, true, true);
  add_backward(cases, {5, 7, 21, 19}, true, false, false);
  add_backward(cases, {5, 7, 21, 19}, false, true, false);
  add_backward(cases, {5, 7, 21, 19}, false, false, true);
  add_backward(cases, {2, 0, 3, 4}, true, true, true);
  add_backward(cases, {4, 20, 130, 130}, true, true, true);
  add_backward(cases, {3, 26, 30, 200}, true, true, true);
  add_forward(cases, {3, 2, 3, 5}, {0, 1, 2}, 1, true);
  add_forward(cases, {2, 2, 0, 3}, {0, 1, 2}, 0, true);
  add_forward(cases, {5, 7, 21, 19}, {0, 1, 2, 3, 4}, 0, true);
  add_backward(cases, {5, 7, 21, 19}, false, true, false, true);
  add_backward(cases, {4, 20, 130, 130}, true, true, true, true);
  add_forward(cases, {3, 26, 30, 200}, {0, 1, 2, 3, 4}, 0, true);
  add_backward(cases, {3, 26, 30, 200}, true, true, true, true);
}

}  // namespace paceline
