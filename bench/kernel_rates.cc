#include "bench/kernel_rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cores.h"
#include "bench/roof.h"
#include "bench/runner.h"
#include "bench/step_work.h"
#include "bench/timing.h"
#include "paceline/ops.h"
#include "predict/bound.h"

namespace paceline::bench {
namespace {

constexpr double kMilli = 1e3, kKernelGiga = 1e9;
constexpr double kOperand = 0.01;

/// Adds cases. Operands are local variables, so that the plan computes nothing in advance.
class CaseList {
 public:
  void product(const char* what, std::int64_t m, std::int64_t n, std::int64_t k, bool ta = false,
               bool tb = false) {
    Graph& graph = begin(fmt::format("matmul, {}", what));
    const Value a = graph.local("a", ta ? Shape{k, m} : Shape{m, k});
    const Value b = graph.local("b", tb ? Shape{n, k} : Shape{k, n});
    end({matmul(a, b, ta, tb)});
  }
  void bias_relu(const char* what, std::int64_t rows, std::int64_t columns) {
    Graph& graph = begin(fmt::format("bias and relu, {}", what));
    end({relu(bias(graph.local("x", {rows, columns}), graph.local("b", {columns})))});
  }
  void cross_entropy(std::int64_t rows, std::int64_t classes) {
    Graph& graph = begin("softmax cross-entropy, ptb");
    const Value logits = graph.local("logits", {rows, classes});
    end({softmax_cross_entropy(logits, graph.local("labels", {rows}, DType::kInt32))});
  }
  void cross_entropy_with_gradient(std::int64_t rows, std::int64_t classes) {
    Graph& graph = begin("softmax cross-entropy with gradient, ptb");
    const Value logits = graph.local("logits", {rows, classes});
    const Value labels = graph.local("labels", {rows}, DType::kInt32);
    const Value inputs[] = {logits, labels, graph.local("gradient", {rows}),
                            graph.local("biases", {classes})};
    end_with(graph.add("softmax_cross_entropy_with_grad", inputs, {}));
  }
  void look_up(std::int64_t words, std::int64_t hidden, std::int64_t count) {
    Graph& graph = begin("embedding look-up, ptb");
    const Value table = graph.local("table", {words, hidden});
    end({embedding_lookup(table, graph.local("ids", {count}, DType::kInt32))});
  }
  void lstm_layer(std::int64_t steps, std::int64_t batch, std::int64_t hidden) {
    Graph& graph = begin("lstm, ptb");
    const Value x = graph.local("x", {steps, batch, hidden});
    const Value h = graph.local("h", {batch, hidden}), c = graph.local("c", {batch, hidden});
    const Value w = graph.local("w", {2 * hidden, 4 * hidden});
    const LstmOutput out = lstm(x, h, c, w, graph.local("b", {4 * hidden}));
    end({out.outputs, out.h, out.c});
  }
  void lstm_layer_backwards(std::int64_t steps, std::int64_t batch, std::int64_t hidden) {
    Graph& graph = begin("lstm backwards, ptb");
    const Shape sequence{steps, batch, hidden}, state{batch, hidden};
    const Value inputs[] = {
        graph.local("x", sequence),       graph.local("h", state),
        graph.local("c", state),          graph.local("w", {2 * hidden, 4 * hidden}),
        graph.local("outputs", sequence), graph.local("gates", {steps, batch, 4 * hidden}),
        graph.local("cells", sequence),   graph.local("gradient", sequence)};
    Attributes attributes;
    attributes.set("has_outputs", true);
    attributes.set("has_h", false);
    attributes.set("has_c", false);
    end_with(graph.add("lstm_grad", inputs, attributes));
  }
  void element_wise(const char* what, Value (*op)(Value), std::int64_t elements) {
    Graph& graph = begin(fmt::format("{}, {} elements", what, elements));
    end({op(graph.local("x", {elements}))});
  }
  void drop(std::int64_t rows, std::int64_t columns) {
    Graph& graph = begin("dropout, ptb medium");
    end({dropout(graph.local("x", {rows, columns}), 0.5)});
  }
  std::vector<KernelCase> take() { return std::move(cases_); }

 private:
  Graph& begin(std::string name) {
    KernelCase& one = cases_.emplace_back();
    one.name = std::move(name);
    one.graph = std::make_unique<Graph>();
    return *one.graph;
  }
  void end_with(const Node& node) {
    KernelCase& one = cases_.back();
    for (std::size_t i = 0; i < node.outputs().size(); ++i)
      one.values.push_back(node.output(int(i)));
  }
  void end(std::vector<Value> values) { cases_.back().values = std::move(values); }

  std::vector<KernelCase> cases_;
};

void fill_operands(Runner& runner, const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op().name != "local" || node->outputs()[0].dtype != DType::kFloat32) continue;
    const TensorView view = runner.view(node->name());
    std::fill_n(view.as<float>(), view.shape.elements(), float(kOperand));
  }
}

void measure_kernel(Recorder& recorder, KernelCase one, RoofMeter& roof_meter) {
  recorder.progress(one.name);
  const Graph& graph = *one.graph;
  models::StepGraph step{
      .section = "", .graph = std::move(one.graph), .training = {}, .fetches = one.values};
  const StepCost work = step_work(step);
  Runner runner(std::move(step), {.threads = usable_cores(), .fuse = true});
  fill_operands(runner, graph);
  std::vector<double> times, bounds, rates;
  for (int i = 0; i < recorder.repeats(); ++i) {
    bounds.push_back(bound_of(work, roof_meter.measure()).total() * kMilli);
    const double seconds = time_calls(1, 0.02, [&] { runner.run(); })[0];
    times.push_back(seconds * kMilli);
    rates.push_back(work.flops() / seconds / kKernelGiga);
  }
  if (work.flops() == 0) return recorder.add(figure_of(one.name, "ms", times));
  recorder.add(figure_beside(one.name, "ms", times, "roof", bounds));
  recorder.add(figure_of(one.name + ": rate", "GFLOP/s", rates));
}

}  // namespace

std::vector<KernelCase> kernel_cases() {
  CaseList list;
  list.product("mlp layer 2", 128, 4096, 4096);
  list.product("mlp layer 2, by x", 128, 4096, 4096, false, true);
  list.product("mlp layer 2, by w", 4096, 4096, 128, true);
  list.product("ptb softmax", 400, 10000, 200);
  list.product("ptb softmax, by x", 400, 200, 10000, false, true);
  list.product("ptb softmax, by w", 200, 10000, 400, true);
  list.bias_relu("mlp layer 2", 128, 4096);
  list.lstm_layer(20, 20, 200);
  list.lstm_layer_backwards(20, 20, 200);
  list.cross_entropy(400, 10000);
  list.cross_entropy_with_gradient(400, 10000);
  list.look_up(10000, 200, 400);
  list.drop(700, 650);
  list.element_wise("tanh", tanh, 1 << 24);
  list.element_wise("sigmoid", sigmoid, 1 << 24);
  list.element_wise("relu", relu, 1 << 24);
  return list.take();
}

void measure_kernels(Recorder& recorder) {
  RoofMeter roof(DType::kFloat32, usable_cores(), 0);
  for (KernelCase& one : kernel_cases()) measure_kernel(recorder, std::move(one), roof);
}

}  // namespace paceline::bench
