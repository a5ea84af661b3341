#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

void add_case(OpCases& cases, const Shape& shape, double keep, const char* label) {
  OpCase c;
  c.op = "dropout";
  c.label = label;
  c.inputs = {floats(shape)};
  c.build = [keep](Graph&, std::span<const Value> in) {
    return std::vector<Value>{dropout(in[0], keep)};
  };
  c.check_gradient = shape.elements() <= 100;
  cases.push_back(std::move(c));
}

}  // namespace

void add_dropout_cases(OpCases& cases) {
  add_case(cases, Shape{}, 0.5, "scalar");
  add_case(cases, Shape{3, 7}, 0.5, "3x7");
  add_case(cases, Shape{2, 3, 5}, 0.35, "2x3x5");
  add_case(cases, Shape{0, 3}, 0.5, "empty");
  add_case(cases, Shape{37, 1031}, 0.9, "37x1031");
}

}  // namespace paceline
