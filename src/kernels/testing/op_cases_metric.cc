#include <fmt/format.h>

#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

void add_arg_max(OpCases& cases, const CaseInput& input, const char* label) {
  OpCase c;
  c.op = "arg_max";
  c.label = label;
  c.inputs = {input};
  c.build = [](Graph&, std::span<const Value> in) { return std::vector<Value>{arg_max(in[0])}; };
  c.tolerance = 0;
  cases.push_back(std::move(c));
}

void add_top_k(OpCases& cases, std::int64_t rows, std::int64_t columns, int k) {
  OpCase c;
  c.op = "top_k_accuracy";
  c.label = fmt::format("{}x{}_k{}", rows, columns, k);
  c.inputs = {floats(Shape{rows, columns}), integers(Shape{rows}, 0, columns)};
  c.build = [k](Graph&, std::span<const Value> in) {
    return std::vector<Value>{top_k_accuracy(in[0], in[1], k)};
  };
  c.tolerance = 1e-7;
  cases.push_back(std::move(c));
}

}  // namespace

void add_metric_cases(OpCases& cases) {
  add_arg_max(cases, floats(Shape{1, 1}), "1x1");
  add_arg_max(cases, floats(Shape{0, 3}), "no_rows");
  add_arg_max(cases, floats(Shape{5, 7}), "5x7");
  add_arg_max(cases, floats(Shape{33, 1031}), "33x1031");
  CaseInput equal = floats(Shape{2, 3});
  equal.values = {1, 2, 2, 0, 0, 0};
  add_arg_max(cases, equal, "first_of_equals");
  add_top_k(cases, 1, 1, 1);
  add_top_k(cases, 9, 5, 1);
  add_top_k(cases, 9, 5, 3);
  add_top_k(cases, 9, 5, 5);
  add_top_k(cases, 45, 1031, 100);
}

}  // namespace paceline
