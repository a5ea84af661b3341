// Tests every op of the library: its fast kernel against the naive kernel, and its gradient against
// central differences in float64. The op list and the cases generate the tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <set>

#include "base/allocation_hook.h"
#include "base/buffer.h"
#include "base/philox.h"
#include "graph/autodiff.h"
#include "graph/sources.h"
#include "kernels/evaluate.h"
#include "kernels/testing/op_cases.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {

// GoogleTest prints this for a failing case.
void PrintTo(const OpCase& c, std::ostream* out) { *out << c.op << " " << c.label; }

namespace {

/// The graph of a case, the values of its inputs, and its outputs.
struct Built {
  Graph graph;
  std::vector<Value> inputs, outputs;
  Feeds feeds;
};

std::string input_name(std::size_t i) { return "input_" + std::to_string(i); }

/// Builds the graph without values for the inputs.
std::unique_ptr<Built> build_graph(const OpCase& c, bool in_double) {
  auto built = std::make_unique<Built>();
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const ValueType& type = c.inputs[i].type;
    const bool doubled = in_double && type.dtype == DType::kFloat32;
    const DType dtype = doubled ? DType::kFloat64 : type.dtype;
    // Inputs of floats are variables, so their gradients may be sparse, as in a training step.
    built->inputs.push_back(
        is_floating(dtype)
            ? built->graph.variable(input_name(i), type.shape, Initializer::zeros(), dtype)
            : built->graph.input(input_name(i), type.shape, dtype));
  }
  built->outputs = c.build(built->graph, built->inputs);
  return built;
}

std::unique_ptr<Built> build(const OpCase& c, bool in_double) {
  auto built = build_graph(c, in_double);
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    built->feeds[input_name(i)] = fill(c.inputs[i], in_double, random_key(i, c.op + c.label));
  }
  return built;
}

const Node& tested_node(const Built& built, const std::string& op) {
  for (const auto& node : built.graph.nodes()) {
    if (node->op().name == op) return *node;
  }
  throw std::logic_error("the case does not add " + op);
}

std::unique_ptr<Device> device(const std::string& kind, int threads, Clock& clock) {
  DeviceOptions options;
  options.kind = kind;
  options.threads = threads;
  return make_device(options, clock);
}

template <typename T>
double distance(const Tensor& a, const Tensor& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.data<T>().size(); ++i) {
    const double x = double(a.data<T>()[i]), y = double(b.data<T>()[i]);
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

/// Returns ‖a − b‖ ÷ ‖b‖. For types other than float32 and float64, returns 0 if equal, else
/// infinity.
double relative_distance(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::kFloat32) return distance<float>(a, b);
  if (a.dtype() == DType::kFloat64) return distance<double>(a, b);
  const bool equal = a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  return equal ? 0 : INFINITY;
}

class OpCaseTest : public testing::TestWithParam<OpCase> {
 protected:
  RealClock clock_;
};

TEST_P(OpCaseTest, FastEqualsNaive) {
  const OpCase& c = GetParam();
  const auto built = build(c, false);
  tested_node(*built, c.op);
  const auto naive = evaluate_graph(built->outputs, built->feeds, *device("naive", 1, clock_));
  for (int threads : {1, 3}) {
    const auto fast = evaluate_graph(built->outputs, built->feeds, *device("cpu", threads, clock_));
    for (std::size_t i = 0; i < fast.size(); ++i) {
      EXPECT_LE(relative_distance(fast[i], naive[i]), c.tolerance)
          << "output " << i << " with " << threads << " threads";
    }
  }
}

std::vector<TensorView> views_of(std::span<const Tensor> tensors) {
  std::vector<TensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

/// Returns output 0 of `node`, computed in the memory of a copy of input `i`.
Tensor run_in_place(const Node& node, std::vector<Tensor> inputs, int i, Device& device) {
  std::vector<Tensor> outputs;
  inputs[std::size_t(i)] = inputs[std::size_t(i)].clone();
  for (const ValueType& type : node.outputs()) outputs.emplace_back(type.dtype, type.shape);
  outputs[0] = inputs[std::size_t(i)];
  const auto kernel = device.make_kernel(node);
  const Buffer scratch(kernel->scratch_bytes());
  kernel->run({views_of(inputs), views_of(outputs), scratch.span(), {}});
  return outputs[0];
}

/// Returns the numbers of the inputs whose memory output 0 may take.
std::vector<int> inputs_in_place(const Node& node) {
  std::vector<int> inputs;
  for (const int i : node.op().in_place) {
    if (i >= int(node.inputs().size()) || node.input(i).type() != node.outputs()[0]) continue;
    inputs.push_back(i);
  }
  return inputs;
}

class InPlaceTest : public OpCaseTest {};

TEST_P(InPlaceTest, EqualsOutOfPlace) {
  const OpCase& c = GetParam();
  const auto built = build(c, false);
  const Node& node = tested_node(*built, c.op);
  const auto cpu = device("cpu", 3, clock_);
  const std::vector<Value> values(node.inputs().begin(), node.inputs().end());
  const auto inputs = evaluate_graph(values, built->feeds, *cpu);
  for (const int i : inputs_in_place(node)) {
    const Tensor expected = evaluate_node(node, inputs, *cpu)[0];
    const Tensor result = run_in_place(node, inputs, i, *cpu);
    EXPECT_EQ(relative_distance(result, expected), 0) << "in the place of input " << i;
  }
}

/// Memory of `bytes` bytes, followed by marks that show whether a kernel wrote past the end.
class MarkedMemory {
 public:
  explicit MarkedMemory(std::size_t bytes) : bytes_(bytes), buffer_(bytes + 256) {
    std::ranges::fill(buffer_.span().subspan(bytes), kMark);
  }
  std::span<std::byte> span() const { return buffer_.span().first(bytes_); }
  bool has_its_marks() const {
    return std::ranges::all_of(buffer_.span().subspan(bytes_),
                               [](std::byte b) { return b == kMark; });
  }

 private:
  static constexpr std::byte kMark{0x5a};
  std::size_t bytes_;
  Buffer buffer_;
};

TEST_P(OpCaseTest, WritesNothingBehindItsOutputsAndScratchMemory) {
  const OpCase& c = GetParam();
  const auto built = build(c, false);
  const Node& node = tested_node(*built, c.op);
  const std::vector<Value> values(node.inputs().begin(), node.inputs().end());
  for (const char* kind : {"naive", "cpu"}) {
    const auto owner = device(kind, 3, clock_);
    const auto inputs = evaluate_graph(values, built->feeds, *owner);
    std::vector<MarkedMemory> memory;
    std::vector<TensorView> outputs;
    for (const ValueType& type : node.outputs()) {
      outputs.push_back({nullptr, type.dtype, type.shape});
      outputs.back().data = memory.emplace_back(outputs.back().bytes()).span().data();
    }
    const auto kernel = owner->make_kernel(node);
    const auto& scratch = memory.emplace_back(kernel->scratch_bytes());
    kernel->run({views_of(inputs), outputs, scratch.span(), {}});
    for (std::size_t i = 0; i < memory.size(); ++i) {
      EXPECT_TRUE(memory[i].has_its_marks()) << kind << " wrote behind memory " << i << " of "
                                             << outputs.size() << " outputs and the scratch memory";
    }
  }
}

TEST_P(OpCaseTest, RunningAllocatesNothing) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  const OpCase& c = GetParam();
  const auto built = build(c, false);
  const Node& node = tested_node(*built, c.op);
  const std::vector<Value> values(node.inputs().begin(), node.inputs().end());
  const auto cpu = device("cpu", 3, clock_);
  const auto inputs = evaluate_graph(values, built->feeds, *cpu);
  std::vector<Tensor> outputs;
  for (const ValueType& type : node.outputs()) outputs.emplace_back(type.dtype, type.shape);
  const auto in = views_of(inputs), out = views_of(outputs);
  const auto kernel = cpu->make_kernel(node);
  const Buffer scratch(kernel->scratch_bytes());
  const KernelCall call{in, out, scratch.span(), {}};
  // OpenMP allocates memory for each thread at its first call, and which thread claims a tile
  // varies. So the test asks that at least one of several runs allocates nothing, and the first
  // runs may allocate.
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (int run = 0; run < 10 && fewest > 0; ++run) {
    const std::int64_t before = allocation_counts().ours;
    kernel->run(call);
    fewest = std::min(fewest, allocation_counts().ours - before);
  }
  EXPECT_EQ(fewest, 0);
}

/// Returns a scalar that depends on every element of every float output.
Value projection(Graph& graph, std::span<const Value> outputs) {
  Value loss;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].dtype() != DType::kFloat64 && outputs[i].dtype() != DType::kFloat32) continue;
    const Value y = cast(outputs[i], DType::kFloat64);
    const Tensor weights = fill(floats(y.shape(), 0.5, 1.5), true, random_key(i, "projection"));
    const Value term = reduce_sum(mul(y, graph.constant(weights)));
    loss = loss ? add(loss, term) : term;
  }
  return loss;
}

/// Returns the gradient of a variable as a dense tensor.
Tensor dense_gradient(const Gradient& gradient, const Value& of, const Feeds& feeds,
                      Device& device) {
  if (gradient.dense) return evaluate_graph({&gradient.dense, 1}, feeds, device)[0];
  Tensor dense(of.dtype(), of.shape());
  if (!gradient) return dense;
  const Value parts[] = {gradient.ids, gradient.rows};
  const auto values = evaluate_graph(parts, feeds, device);
  const std::span<double> rows = values[1].data<double>();
  const auto ids = values[0].data<std::int32_t>();
  const std::size_t row = rows.size() / std::max<std::size_t>(1, ids.size());
  for (std::size_t r = 0; r < ids.size(); ++r) {
    double* to = dense.data<double>().data() + std::size_t(ids[r]) * row;
    for (std::size_t k = 0; k < row; ++k) to[k] += rows[r * row + k];
  }
  return dense;
}

Tensor central_differences(Value loss, const std::string& input, Feeds feeds, Device& device) {
  constexpr double kStep = 1e-5;
  Tensor x = feeds[input].clone();
  feeds[input] = x;
  Tensor gradient(x.dtype(), x.shape());
  for (std::size_t i = 0; i < x.data<double>().size(); ++i) {
    double& element = x.data<double>()[i];
    const double value = element;
    element = value + kStep;
    const double above = evaluate_graph({&loss, 1}, feeds, device)[0].item<double>();
    element = value - kStep;
    const double below = evaluate_graph({&loss, 1}, feeds, device)[0].item<double>();
    element = value;
    gradient.data<double>()[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

bool has_gradient_check(const OpCase& c) {
  if (!c.check_gradient || !builtin_ops().find(c.op).gradient) return false;
  for (const CaseInput& input : c.inputs) {
    if (input.differentiable && input.type.dtype == DType::kFloat32) return true;
  }
  return false;
}

class GradientTest : public OpCaseTest {};

TEST_P(GradientTest, EqualsCentralDifferences) {
  const OpCase& c = GetParam();
  const auto built = build(c, true);
  const auto naive = device("naive", 1, clock_);
  const Value loss = projection(built->graph, built->outputs);
  std::vector<Value> wrt;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const bool checked = c.inputs[i].differentiable && built->inputs[i].dtype() == DType::kFloat64;
    if (checked) wrt.push_back(built->inputs[i]);
  }
  const std::vector<Gradient> gradient = differentiate(loss, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    const Tensor expected = central_differences(loss, wrt[i].name(), built->feeds, *naive);
    const Tensor result = dense_gradient(gradient[i], wrt[i], built->feeds, *naive);
    EXPECT_LE(relative_distance(expected, result), 1e-6) << "by " << wrt[i].name();
  }
}

bool may_be_in_place(const OpCase& c) {
  if (builtin_ops().find(c.op).in_place.empty()) return false;
  const auto built = build_graph(c, false);
  return !inputs_in_place(tested_node(*built, c.op)).empty();
}

template <typename Predicate>
OpCases cases_where(const Predicate& predicate) {
  OpCases cases;
  for (OpCase& c : all_op_cases()) {
    if (predicate(c)) cases.push_back(std::move(c));
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  return info.param.op + "_" + info.param.label;
}

INSTANTIATE_TEST_SUITE_P(Ops, OpCaseTest, testing::ValuesIn(all_op_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Ops, InPlaceTest, testing::ValuesIn(cases_where(&may_be_in_place)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, testing::ValuesIn(cases_where(&has_gradient_check)),
                         case_name);

TEST(OpListTest, EveryOpHasCases) {
  std::set<std::string> compared, differentiated, in_place;
  for (const OpCase& c : all_op_cases()) {
    compared.insert(c.op);
    if (has_gradient_check(c)) differentiated.insert(c.op);
    if (may_be_in_place(c)) in_place.insert(c.op);
  }
  for (const Op* op : builtin_ops().all()) {
    if (is_source(op->name)) continue;
    EXPECT_TRUE(compared.contains(op->name)) << op->name << " has no case in op_cases_*.cc";
    EXPECT_TRUE(!op->gradient || differentiated.contains(op->name))
        << op->name << " has no case that checks its gradient";
    EXPECT_TRUE(op->in_place.empty() || in_place.contains(op->name))
        << op->name << " has no case with an input of its output's type";
  }
}

}  // namespace
}  // namespace paceline
