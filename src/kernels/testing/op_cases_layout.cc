// Cases of the ops that only move elements.
#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Inputs = std::span<const Value>;
using Outputs = std::vector<Value>;
using Dims = std::vector<std::int64_t>;

Dims dims_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

void add_case(OpCases& cases, const char* op, const char* label, std::vector<CaseInput> inputs,
              const std::function<Outputs(Inputs)>& build, bool check_gradient = true) {
  cases.push_back({op, label, std::move(inputs), [build](Graph&, Inputs in) { return build(in); },
                   0, check_gradient});
}

void add_broadcast_cases(OpCases& cases) {
  struct Case {
    const char* label;
    Shape from, to;
    bool large = false;
  };
  const Case all[] = {{"scalar", {}, {3, 5}},           {"row", {5}, {3, 5}},
                      {"column", {3, 1}, {3, 5}},       {"same", {3, 5}, {3, 5}},
                      {"middle", {2, 1, 4}, {2, 3, 4}}, {"mixed", {1, 3, 1}, {2, 4, 3, 5}},
                      {"empty", {1, 3}, {0, 3}},        {"tiles", {1, 257}, {301, 257}, true}};
  for (const Case& c : all) {
    auto build = [to = dims_of(c.to)](Graph& graph, Inputs in) -> Outputs {
      return {graph.apply("broadcast_to", {in[0]}, {{"shape", to}})};
    };
    cases.push_back({"broadcast_to", c.label, {floats(c.from)}, build, 0, !c.large});
  }
}

void add_reshape_cases(OpCases& cases) {
  add_case(cases, "reshape", "open", {floats({3, 4})}, [](Inputs in) -> Outputs {
    return {reshape(in[0], {2, -1})};
  });
  add_case(cases, "reshape", "scalar", {floats({1, 1})},
           [](Inputs in) -> Outputs { return {reshape(in[0], {})}; });
  add_case(cases, "reshape", "empty", {floats({0, 4})}, [](Inputs in) -> Outputs {
    return {reshape(in[0], {2, 0, 3})};
  });
}

// Differences by the input of stop_gradient are not zero, but its gradient is. So the check covers
// only another input.
void add_stop_gradient_cases(OpCases& cases) {
  for (const Shape& shape : {Shape{}, Shape{3, 5}, Shape{0, 4}}) {
    CaseInput x = floats(shape);
    x.differentiable = false;
    add_case(cases, "stop_gradient",
             shape.elements() == 0 ? "empty"
             : shape.rank() == 0   ? "scalar"
                                   : "matrix",
             {x, floats({2})}, [](Inputs in) -> Outputs { return {stop_gradient(in[0])}; });
  }
}

void add_transpose_cases(OpCases& cases) {
  struct Case {
    const char* label;
    Shape shape;
    Dims permutation;
    bool large = false;
  };
  const Case all[] = {{"matrix", {3, 5}, {1, 0}},
                      {"reversed", {2, 3, 4}, {}},
                      {"rows", {2, 3, 5}, {1, 0, 2}},
                      {"turn", {2, 3, 4}, {2, 0, 1}},
                      {"four", {2, 3, 4, 5}, {0, 3, 1, 2}},
                      {"ones", {1, 3, 1}, {2, 1, 0}},
                      {"same", {3, 5}, {0, 1}},
                      {"vector", {7}, {0}},
                      {"empty", {0, 3}, {1, 0}},
                      {"tiles", {201, 303}, {1, 0}, true},
                      {"row_tiles", {31, 37, 65}, {1, 0, 2}, true},
                      {"deep_tiles", {7, 41, 11, 23}, {3, 0, 2, 1}, true}};
  for (const Case& c : all) {
    add_case(
        cases, "transpose", c.label, {floats(c.shape)},
        [p = c.permutation](Inputs in) -> Outputs { return {transpose(in[0], p)}; }, !c.large);
  }
  for (const DType dtype : {DType::kUInt8, DType::kBFloat16, DType::kInt64}) {
    CaseInput input = floats({5, 7}, 0, 100);
    input.type.dtype = dtype;
    input.differentiable = false;
    add_case(
        cases, "transpose", name_of(dtype).data(), {input},
        [](Inputs in) -> Outputs { return {transpose(in[0])}; }, false);
  }
}

void add_concat_cases(OpCases& cases) {
  auto join = [](int axis) { return [axis](Inputs in) -> Outputs { return {concat(in, axis)}; }; };
  add_case(cases, "concat", "rows", {floats({2, 3}), floats({1, 3}), floats({4, 3})}, join(0));
  add_case(cases, "concat", "columns", {floats({3, 2}), floats({3, 1}), floats({3, 5})}, join(1));
  add_case(cases, "concat", "middle", {floats({2, 3, 2}), floats({2, 1, 2})}, join(-2));
  add_case(cases, "concat", "single", {floats({3, 2})}, join(1));
  add_case(cases, "concat", "empty", {floats({0, 2}), floats({3, 2}), floats({0, 2})}, join(0));
  add_case(cases, "concat", "ids", {integers({4}, 0, 9), integers({3}, 0, 9)}, join(0), false);
  add_case(cases, "concat", "tiles", {floats({301, 99}), floats({301, 201})}, join(1), false);

  auto cut = [](int parts, int axis) {
    return [parts, axis](Inputs in) -> Outputs { return split(in[0], parts, axis); };
  };
  add_case(cases, "split", "rows", {floats({6, 3})}, cut(3, 0));
  add_case(cases, "split", "columns", {floats({3, 8})}, cut(4, 1));
  add_case(cases, "split", "middle", {floats({2, 4, 3})}, cut(2, -2));
  add_case(cases, "split", "single", {floats({3, 2})}, cut(1, 1));
  add_case(cases, "split", "empty", {floats({0, 4})}, cut(2, 1));
  add_case(cases, "split", "tiles", {floats({301, 400})}, cut(4, 1), false);
  add_case(cases, "split", "one_part_used", {floats({6, 3})},
           [](Inputs in) -> Outputs { return {split(in[0], 3, 0)[1]}; });
}

void add_slice_cases(OpCases& cases) {
  auto take = [](const Dims& begin, const Dims& size) {
    return [begin, size](Inputs in) -> Outputs { return {slice(in[0], begin, size)}; };
  };
  add_case(cases, "slice", "inner", {floats({5, 7})}, take({1, 2}, {3, 4}));
  add_case(cases, "slice", "all", {floats({3, 5})}, take({0, 0}, {3, 5}));
  add_case(cases, "slice", "element", {floats({3, 4, 5})}, take({2, 1, 4}, {1, 1, 1}));
  add_case(cases, "slice", "nothing", {floats({3, 5})}, take({3, 1}, {0, 2}));
  add_case(cases, "slice", "scalar", {floats({})}, take({}, {}));
  add_case(cases, "slice", "tiles", {floats({301, 301})}, take({1, 3}, {299, 257}), false);

  auto around = [](const Dims& before, const Dims& after) {
    return [before, after](Inputs in) -> Outputs { return {pad(in[0], before, after)}; };
  };
  add_case(cases, "pad", "both", {floats({2, 3})}, around({1, 2}, {3, 1}));
  add_case(cases, "pad", "none", {floats({2, 3})}, around({0, 0}, {0, 0}));
  add_case(cases, "pad", "deep", {floats({2, 1, 3})}, around({0, 1, 0}, {1, 0, 2}));
  add_case(cases, "pad", "empty", {floats({0, 3})}, around({1, 0}, {1, 0}));
  add_case(cases, "pad", "tiles", {floats({255, 257})}, around({1, 1}, {2, 3}), false);
}

}  // namespace

void add_layout_cases(OpCases& cases) {
  add_stop_gradient_cases(cases);
  add_broadcast_cases(cases);
  add_reshape_cases(cases);
  add_transpose_cases(cases);
  add_concat_cases(cases);
  add_slice_cases(cases);
}

}  // namespace paceline
