// Cases of the reductions.
#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Inputs = std::span<const Value>;
using Outputs = std::vector<Value>;

struct Reduction {
  const char* label;
  Shape shape;
  std::vector<std::int64_t> axes;
  bool keep = false;
  bool large = false;
};

const std::vector<Reduction>& reductions() {
  static const std::vector<Reduction> all = {
      {"all", {3, 5}, {}},
      {"scalar", {}, {}},
      {"rows", {3, 5}, {1}},
      {"columns", {3, 5}, {0}},
      {"kept", {3, 5}, {-1}, true},
      {"middle", {2, 3, 5}, {1}},
      {"alternating", {2, 3, 4, 5}, {0, 2}},
      {"alternating_kept", {2, 3, 4, 5}, {1, 3}, true},
      {"ones", {1, 3, 1}, {0, 2}},
      {"no_rows", {0, 3}, {1}},
      {"no_columns", {3, 0}, {0}},
      {"no_columns_of_many", {40, 3, 0}, {1}},
      {"all_tiles", {7, 9973}, {}, false, true},
      {"row_tiles", {63, 1001}, {1}, false, true},
      {"column_tiles", {63, 1001}, {0}, false, true},
      {"long_columns", {200003, 3}, {0}, false, true},
      {"long_columns_of_many", {2, 30011, 5}, {1}, false, true},
      {"long_rows", {3, 20011}, {1}, false, true},
  };
  return all;
}

using Build = Value (*)(Value, std::vector<std::int64_t>, bool);

void add_cases(OpCases& cases, const char* op, Build f, const Reduction& reduction) {
  auto build = [f, reduction](Graph&, Inputs in) -> Outputs {
    return {f(in[0], reduction.axes, reduction.keep)};
  };
  // Values are positive, so that a sum does not cancel and its relative error has a meaning.
  cases.push_back(
      {op, reduction.label, {floats(reduction.shape, 0, 2)}, build, 1e-6, !reduction.large});
}

void add_max_gradient_cases(OpCases& cases) {
  const std::vector<std::int64_t> columns = {1};
  auto build = [columns](Graph& graph, Inputs in) -> Outputs {
    return {graph.apply("reduce_max_grad", {in[0], in[1], in[2]},
                        {{"axes", columns}, {"keep", false}})};
  };
  CaseInput x = floats({2, 3});
  x.values = {1, 4, 4, 7, 5, 6};
  CaseInput y = floats({2});
  y.values = {4, 7};
  cases.push_back({"reduce_max_grad", "shared", {floats({2}), x, y}, build});
}

}  // namespace

void add_reduce_cases(OpCases& cases) {
  for (const Reduction& reduction : reductions()) {
    add_cases(cases, "reduce_sum", reduce_sum, reduction);
    add_cases(cases, "reduce_mean", reduce_mean, reduction);
    add_cases(cases, "reduce_max", reduce_max, reduction);
  }
  add_cases(cases, "reduce_sum", reduce_sum, {"of_nothing", {0, 3}, {0}});
  add_max_gradient_cases(cases);
}

}  // namespace paceline
