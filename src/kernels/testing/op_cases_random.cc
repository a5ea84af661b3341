#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

void add_cases(OpCases& cases, const Shape& shape, const std::string& label) {
  const auto add = [&](const char* op, auto build) {
    OpCase c;
    c.op = op;
    c.label = label;
    c.build = [build](Graph& graph, std::span<const Value>) {
      return std::vector<Value>{build(graph)};
    };
    cases.push_back(std::move(c));
  };
  add("random_normal", [shape](Graph& graph) { return random_normal(graph, shape, 1, 2); });
  add("random_uniform", [shape](Graph& graph) { return random_uniform(graph, shape, -3, 5); });
  add("random_integers", [shape](Graph& graph) { return random_integers(graph, shape, -7, 90); });
}

}  // namespace

void add_random_cases(OpCases& cases) {
  add_cases(cases, Shape{}, "scalar");
  add_cases(cases, Shape{0, 2}, "empty");
  add_cases(cases, Shape{3, 7}, "3x7");
  add_cases(cases, Shape{101, 103}, "101x103");
}

}  // namespace paceline
