// Writes each model and each case of an op as ONNX, with the values that Paceline computes for it;
// onnx_values.py compares them. usage: onnx_values FOLDER
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/philox.h"
#include "base/real_clock.h"
#include "checkpoint/safetensors_writer.h"
#include "graph/passes.h"
#include "graph/rewrite.h"
#include "graph/sources.h"
#include "kernels/device.h"
#include "kernels/evaluate.h"
#include "kernels/testing/op_cases.h"
#include "models/airbench_graph.h"
#include "models/cifar10.h"
#include "models/cifar10_graph.h"
#include "models/mlp.h"
#include "models/ptb.h"
#include "models/ptb_graph.h"
#include "models/resnet.h"
#include "models/resnet_graph.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "tests/step_values.h"
#include "train/onnx_export.h"

namespace paceline::testing {
namespace {

using namespace models;

void write_model(const std::string& file, const OnnxModel& model, const Feeds& variables) {
  NewFile onnx(file);
  export_onnx(
      model, [&](const TensorInfo& variable) { return variables.at(variable.name); }, onnx);
  onnx.commit();
}

// Writes FILE with "in/NAME" and "out/NAME", the names being those of the ONNX model.
void write_values(const std::string& file, const InferenceGraph& graph, const Feeds& feeds) {
  static RealClock clock;
  const auto device = make_device({.kind = "cpu", .threads = 2}, clock);
  std::vector<Value> outputs;
  for (const NamedValue& output : graph.outputs) outputs.push_back(output.value);
  // An ONNX model computes as inference does.
  const RewrittenGraph serves = with_inference({*graph.graph, outputs, false});
  const RewrittenGraph fast = rewrite(*serves.graph, serves.roots, true, {}, nullptr);
  const std::vector<Tensor> results = evaluate_graph(fast.roots, feeds, *device);
  std::vector<NamedTensor> tensors;
  for (const NamedValue& input : graph.inputs) {
    tensors.push_back({"in/" + input.name, feeds.at(input.value.node().name())});
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    tensors.push_back({"out/" + graph.outputs[i].name, results[i]});
  }
  write_safetensors(file, tensors);
}

// Returns variables for which outputs depend on the inputs as much as after a training. The head of
// `fast` gets large values, since the model divides its products by their number.
Feeds lively_feeds(const Graph& graph) {
  Feeds feeds = trained_feeds(graph);
  for (const auto& [name, value] : feeds) {
    const Shape& shape = value.shape();
    if (shape.rank() < 2 || value.dtype() != DType::kFloat32 || name == "images") continue;
    const std::int64_t products = shape.rank() == 4 ? shape.elements() / shape[0] : shape[0];
    const float bound = name == "head/w" ? 10.0f : std::sqrt(6 / float(products));
    Initializer::uniform(-bound, bound).fill(value.data<float>(), shape, 3, name);
  }
  return feeds;
}

// Writes the model of a run with the variables of `trained`, for batch sizes that were never
// trained.
void write_zoo_model(const std::string& folder, const std::string& name, const Model& model,
                     const Graph& trained) {
  const Feeds variables = lively_feeds(trained);
  SavedShapes saved;
  for (const auto& node : trained.nodes()) {
    if (is_variable(*node)) saved[node->name()] = node->outputs()[0].shape;
  }
  const OnnxModel exported = model.onnx_model(saved).value();
  write_model(fmt::format("{}/{}.onnx", folder, name), exported, variables);
  for (const std::int64_t size : {1, 5}) {
    std::vector<std::int64_t> sizes(exported.open.size(), size);
    // If both time and batch are open, they get different sizes.
    sizes.front() += std::int64_t(sizes.size()) - 1;
    const InferenceGraph graph = exported.build(sizes);
    write_values(fmt::format("{}/{}@{}.safetensors", folder, name, size), graph,
                 lively_feeds(*graph.graph));
  }
}

void write_zoo(const std::string& folder) {
  Graph mlp, ptb, cifar10, resnet, fast;
  build_mlp(mlp, {.batch = 8, .features = 40, .hidden = 300, .layers = 3});
  write_zoo_model(folder, "mlp", mlp_model(), mlp);
  PtbConfig of_ptb;
  of_ptb.hidden = 60;
  of_ptb.vocabulary = 500;
  build_ptb(ptb, of_ptb, 8, 10, true);
  write_zoo_model(folder, "ptb", ptb_model(), ptb);
  build_cifar10(cifar10, 8, 7);
  write_zoo_model(folder, "cifar10", cifar10_model(), cifar10);
  build_resnet(resnet, 3, 8, true, 12);
  write_zoo_model(folder, "resnet", resnet_model(), resnet);
  build_airbench(fast, {.batch = 8, .classes = 7, .widths = {24, 40, 56}});
  write_zoo_model(folder, "fast", cifar10_model(), fast);
}

// Returns the op with inputs in place of its variables, and with only these outputs.
OnnxModel model_of(const OpCase& op, const std::optional<std::vector<std::size_t>>& outputs) {
  return {.open = {}, .build = [op, outputs](std::span<const std::int64_t>) {
            InferenceGraph made{.graph = std::make_unique<Graph>()};
            std::vector<Value> inputs;
            for (std::size_t i = 0; i < op.inputs.size(); ++i) {
              const std::string name = fmt::format("x{}", i);
              const ValueType& type = op.inputs[i].type;
              inputs.push_back(made.graph->input(name, type.shape, type.dtype));
              made.inputs.push_back({name, inputs.back()});
            }
            const std::vector<Value> results = op.build(*made.graph, inputs);
            for (std::size_t i = 0; i < results.size(); ++i) {
              if (outputs && std::ranges::find(*outputs, i) == outputs->end()) continue;
              made.outputs.push_back({fmt::format("y{}", i), results[i]});
            }
            return made;
          }};
}

bool can_be_written(const std::string& file, const OnnxModel& model) {
  try {
    write_model(file, model, {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

void write_ops(const std::string& folder) {
  std::set<std::string> exported, others;
  for (const OpCase& op : all_op_cases()) {
    const std::string name = fmt::format("{}/op-{}-{}", folder, op.op, op.label);
    std::vector<std::size_t> outputs;
    const std::size_t count = model_of(op, {}).build({}).outputs.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (can_be_written(folder + "/tried", model_of(op, {{i}}))) outputs.push_back(i);
    }
    (outputs.empty() ? others : exported).insert(op.op);
    if (outputs.empty()) continue;
    const OnnxModel model = model_of(op, outputs);
    write_model(name + ".onnx", model, {});
    Feeds feeds;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      feeds[fmt::format("x{}", i)] = fill(op.inputs[i], false, random_key(i, op.op + op.label));
    }
    write_values(name + "@0.safetensors", model.build({}), feeds);
  }
  for (const std::string& op : exported) others.erase(op);
  fmt::print("onnx: {} ops are exported, not {}\n", exported.size(), fmt::join(others, ", "));
}

}  // namespace
}  // namespace paceline::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: onnx_values FOLDER\n");
    return 2;
  }
  try {
    paceline::testing::write_zoo(argv[1]);
    paceline::testing::write_ops(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onnx_values: %s\n", error.what());
    return 1;
  }
  return 0;
}
