#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

void add_case(OpCases& cases, const std::vector<Shape>& shapes, const char* label) {
  OpCase c;
  c.op = "global_norm";
  c.label = label;
  std::int64_t elements = 0;
  for (const Shape& shape : shapes) {
    c.inputs.push_back(floats(shape));
    elements += shape.elements();
  }
  c.build = [](Graph&, std::span<const Value> in) { return std::vector<Value>{global_norm(in)}; };
  c.check_gradient = elements <= 100;
  cases.push_back(std::move(c));
}

}  // namespace

void add_norm_cases(OpCases& cases) {
  add_case(cases, {Shape{}}, "scalar");
  add_case(cases, {Shape{3, 5}, Shape{7}, Shape{}}, "3x5_7_scalar");
  add_case(cases, {Shape{0, 4}, Shape{3}}, "one_empty");
  add_case(cases, {Shape{301, 257}, Shape{1031}, Shape{33, 3}}, "large");
}

}  // namespace paceline
