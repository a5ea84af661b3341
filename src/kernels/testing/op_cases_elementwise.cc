// Cases of the element-wise ops, of bias and of fused chains.
#include "graph/fused_program.h"
#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Inputs = std::span<const Value>;
using Outputs = std::vector<Value>;

struct NamedShape {
  const char* label;
  Shape shape;
  bool large = false;
};

// Sizes that are odd, one, zero, and large enough to be cut into tiles.
const std::vector<NamedShape>& shapes() {
  static const std::vector<NamedShape> shapes = {{"scalar", {}},
                                                 {"one", {1, 1}},
                                                 {"odd", {3, 5, 7}},
                                                 {"empty", {3, 0}},
                                                 {"tiles", {7, 9973}, true}};
  return shapes;
}

struct UnaryCase {
  const char* op;
  Value (*build)(Value);
  double low = -3, high = 3;
};

void add_unary_cases(OpCases& cases) {
  const UnaryCase unary[] = {
      {"relu", [](Value x) { return relu(x); }},
      {"leaky_relu", [](Value x) { return leaky_relu(x, 0.1); }},
      {"scale", [](Value x) { return scale(x, -2.5); }},
      {"sigmoid", [](Value x) { return sigmoid(x); }, -20, 20},
      {"tanh", [](Value x) { return tanh(x); }, -6, 6},
      {"exp", [](Value x) { return exp(x); }, -8, 8},
      {"log", [](Value x) { return log(x); }, 0.1, 10},
      {"sqrt", [](Value x) { return sqrt(x); }, 0.1, 10},
      {"square", [](Value x) { return square(x); }},
      {"abs", [](Value x) { return abs(x); }},
      {"sign", [](Value x) { return sign(x); }},
      {"erf", [](Value x) { return erf(x); }, -4, 4},
  };
  for (const UnaryCase& op : unary) {
    for (const NamedShape& shape : shapes()) {
      auto build = [f = op.build](Graph&, Inputs in) -> Outputs { return {f(in[0])}; };
      cases.push_back(
          {op.op, shape.label, {floats(shape.shape, op.low, op.high)}, build, 1e-6, !shape.large});
    }
  }
}

void add_gradient_cases(OpCases& cases) {
  for (const char* op : {"relu_grad", "leaky_relu_grad", "sigmoid_grad", "tanh_grad"}) {
    for (const NamedShape& shape : shapes()) {
      auto build = [op](Graph& graph, Inputs in) -> Outputs {
        Attributes attributes;
        if (std::string_view(op) == "leaky_relu_grad") attributes.set("slope", 0.1);
        return {graph.apply(op, {in[0], in[1]}, attributes)};
      };
      cases.push_back({op, shape.label, {floats(shape.shape), floats(shape.shape)}, build});
    }
  }
}

struct BinaryShapes {
  const char* label;
  Shape a, b;
  bool large = false;
};

void add_binary_cases(OpCases& cases) {
  const BinaryShapes pairs[] = {
      {"same", {3, 5}, {3, 5}},
      {"scalars", {}, {}},
      {"scalar", {3, 5}, {}},
      {"from_scalar", {}, {3, 5}},
      {"row", {4, 3, 5}, {5}},
      {"column", {3, 5}, {3, 1}},
      {"outer", {3, 1}, {1, 5}},
      {"middle", {2, 3, 4}, {2, 1, 4}},
      {"both", {2, 1, 4, 1}, {3, 1, 5}},
      {"empty", {0, 3}, {3}},
      {"tiles", {61, 1001}, {61, 1001}, true},
      {"row_tiles", {61, 1001}, {1001}, true},
  };
  const std::pair<const char*, Value (*)(Value, Value)> ops[] = {
      {"add", add},         {"sub", sub},
      {"mul", mul},         {"div", div},
      {"maximum", maximum}, {"minimum", minimum},
      {"greater", greater}, {"greater_equal", greater_equal}};
  for (const auto& [op, f] : ops) {
    for (const BinaryShapes& pair : pairs) {
      auto build = [f = f](Graph&, Inputs in) -> Outputs { return {f(in[0], in[1])}; };
      cases.push_back(
          {op, pair.label, {floats(pair.a), floats(pair.b, 0.5, 2)}, build, 1e-6, !pair.large});
    }
  }
}

void add_pow_cases(OpCases& cases) {
  const BinaryShapes pairs[] = {{"same", {3, 5}, {3, 5}},  {"scalar", {3, 5}, {}},
                                {"row", {4, 3, 5}, {5}},   {"empty", {0, 3}, {3}},
                                {"outer", {3, 1}, {1, 5}}, {"tiles", {61, 1001}, {61, 1001}, true}};
  auto build = [](Graph&, Inputs in) -> Outputs { return {pow(in[0], in[1])}; };
  for (const BinaryShapes& pair : pairs) {
    cases.push_back({"pow",
                     pair.label,
                     {floats(pair.a, 0.2, 3), floats(pair.b, -3, 3)},
                     build,
                     1e-6,
                     !pair.large});
  }
  // A base below zero has integer powers only, and these have no gradient by the exponent.
  CaseInput exponents = floats({2, 3});
  exponents.values = {-2, -1, 0, 1, 2, 3};
  exponents.differentiable = false;
  cases.push_back({"pow", "of_negative", {floats({2, 3}, -2, -0.5), exponents}, build});
}

CaseInput flags(const Shape& shape) {
  CaseInput input = integers(shape, 0, 2);
  input.type.dtype = DType::kFloat32;
  for (std::int64_t i = 0; i < shape.elements(); ++i) input.values.push_back(double(i % 3 % 2));
  return input;
}

void add_where_cases(OpCases& cases) {
  struct {
    const char* label;
    Shape condition, a, b;
  } const shapes[] = {{"same", {3, 5}, {3, 5}, {3, 5}},
                      {"scalars", {}, {}, {}},
                      {"scalar_a", {3, 5}, {}, {3, 5}},
                      {"scalar_b", {3, 5}, {3, 5}, {1}},
                      {"scalar_condition", {}, {7}, {7}},
                      {"rows", {3, 5}, {5}, {3, 1}},
                      {"condition_of_rows", {3, 1}, {3, 5}, {}},
                      {"empty", {0, 3}, {0, 3}, {}},
                      {"odd_tiles", {7, 9973}, {7, 9973}, {7, 9973}}};
  for (const auto& shape : shapes) {
    auto build = [](Graph&, Inputs in) -> Outputs { return {where(in[0], in[1], in[2])}; };
    cases.push_back({"where",
                     shape.label,
                     {flags(shape.condition), floats(shape.a), floats(shape.b)},
                     build,
                     0,
                     shape.condition.elements() < 100});
  }
}

void add_equal_cases(OpCases& cases) {
  for (const NamedShape& shape : shapes()) {
    auto build = [](Graph&, Inputs in) -> Outputs { return {equal(in[0], in[1])}; };
    CaseInput a = flags(shape.shape), b = floats(shape.shape);
    b.values.assign(a.values.rbegin(), a.values.rend());
    a.differentiable = true;
    b.differentiable = false;
    // Where the operands are equal, `equal` jumps, so a difference quotient has no limit, and only
    // the values are compared.
    cases.push_back({"equal", shape.label, {a, b}, build, 0, false});
  }
  auto build = [](Graph&, Inputs in) -> Outputs { return {equal(in[0], in[1])}; };
  cases.push_back({"equal", "apart", {floats({3, 5}), floats({3, 5}, 2, 3)}, build, 0});
}

void add_bias_cases(OpCases& cases) {
  const BinaryShapes pairs[] = {{"odd", {3, 5}, {5}},   {"deep", {2, 3, 7}, {7}},
                                {"one", {1, 1}, {1}},   {"vector", {5}, {5}},
                                {"empty", {0, 5}, {5}}, {"tiles", {67, 999}, {999}, true}};
  for (const BinaryShapes& pair : pairs) {
    auto build = [](Graph&, Inputs in) -> Outputs { return {bias(in[0], in[1])}; };
    cases.push_back(
        {"bias", pair.label, {floats(pair.a), floats(pair.b)}, build, 1e-6, !pair.large});
    for (const char* activation : {"relu", "leaky_relu", "sigmoid", "tanh"}) {
      auto build_both = [activation](Graph& graph, Inputs in) -> Outputs {
        return {graph.apply("bias_activation", {in[0], in[1]},
                            {{"activation", std::string(activation)}, {"slope", 0.2}})};
      };
      cases.push_back({"bias_activation",
                       std::string(activation) + "_" + pair.label,
                       {floats(pair.a), floats(pair.b)},
                       build_both});
    }
  }
}

// The program has every op that may be a step, and operands of one element.
constexpr const char* kProgram =
    "mul i0 i1\nadd t0 i2\nsigmoid t1\ntanh t1\nsub t2 t3\nsquare t4\nsqrt t5\nexp t6\nlog t7\n"
    "scale t8 0.5\nrelu t9\nleaky_relu t4 0.1\nadd t10 t11\nrelu_grad t12 i0\n"
    "leaky_relu_grad t13 i1 0.1\nsigmoid_grad t14 t2\ntanh_grad t15 t3\ndiv t16 i2\nadd t17 t0\n"
    "abs t18\nsign i0\nerf t19\nmaximum t21 i1\nminimum t22 i2\npow i2 i0\ngreater i0 i1\n"
    "greater_equal i1 i2\nequal i0 i0\nwhere t25 t23 t24\nadd t28 t20\nadd t29 t26\nadd t30 t27\n";

void add_fused_cases(OpCases& cases) {
  for (const NamedShape& shape : shapes()) {
    auto build = [](Graph& graph, Inputs in) -> Outputs {
      return {graph.apply("fused_elementwise", {in[0], in[1], in[2]},
                          {{"program", std::string(kProgram)}})};
    };
    cases.push_back({"fused_elementwise",
                     shape.label,
                     {floats(shape.shape), floats(shape.shape), floats({}, 1, 2)},
                     build});
  }
  auto build = [](Graph& graph, Inputs in) -> Outputs {
    return {graph.apply("fused_elementwise", {in[0], in[1]},
                        {{"program", std::string("exp i0\nadd t0 i1\n")}})};
  };
  cases.push_back({"fused_elementwise", "one_element_step", {floats({1}), floats({4, 5})}, build});
}

void add_cast_cases(OpCases& cases) {
  for (int from = 0; from < kDTypeCount; ++from) {
    for (int to = 0; to < kDTypeCount; ++to) {
      // All types hold these values exactly, so the test compares them exactly.
      CaseInput input = floats({3, 5}, 0, 100);
      input.type.dtype = DType(from);
      input.differentiable = DType(from) == DType::kFloat32 && is_floating(DType(to));
      auto build = [to](Graph&, Inputs in) -> Outputs { return {cast(in[0], DType(to))}; };
      // After rounding to fewer bits than float64 has, no small difference is visible.
      const bool exact = DType(to) == DType::kFloat64;
      cases.push_back({"cast",
                       std::string(name_of(DType(from))) + "_" + std::string(name_of(DType(to))),
                       {input},
                       build,
                       0,
                       exact});
    }
  }
  auto build = [](Graph&, Inputs in) -> Outputs { return {cast(in[0], DType::kInt32)}; };
  cases.push_back({"cast", "tiles", {floats({3, 17001}, -100, 100)}, build, 0, false});
  cases.push_back({"cast", "empty", {floats({0, 5})}, build, 0, false});
}

}  // namespace

void add_elementwise_cases(OpCases& cases) {
  add_unary_cases(cases);
  add_gradient_cases(cases);
  add_binary_cases(cases);
  add_pow_cases(cases);
  add_equal_cases(cases);
  add_where_cases(cases);
  add_bias_cases(cases);
  add_fused_cases(cases);
  add_cast_cases(cases);
}

}  // namespace paceline
