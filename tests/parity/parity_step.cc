// Computes one training step of each model, and the model's inference, and writes the numbers;
// parity.py compares them. usage: parity_step FOLDER
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/real_clock.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/torch_names.h"
#include "graph/rewrite.h"
#include "graph/sources.h"
#include "kernels/device.h"
#include "models/airbench_graph.h"
#include "models/cifar10_graph.h"
#include "models/mlp.h"
#include "models/ptb.h"
#include "models/ptb_graph.h"
#include "models/resnet_graph.h"
#include "tests/step_values.h"

namespace paceline::testing {
namespace {

using namespace models;

std::vector<Root> roots_with_ids(const Training& training) {
  std::vector<Root> roots = roots_of(training);
  for (Root& root : roots) root.name = "result/" + root.name;
  for (const VariableUpdate& update : training.updates) {
    const Gradient& gradient = update.contribution;
    if (gradient.sparse()) roots.push_back({"ids/" + update.variable.name(), gradient.ids});
  }
  return roots;
}

// Writes FOLDER/MODEL.safetensors, with "feed/NAME", what the step reads, and "result/NAME", what
// it computes. If there is "ids/NAME", the result has these rows of the variable, and rows with
// equal ids must be added.
void write_step(const std::string& folder, const char* model, const Training& training) {
  static RealClock clock;
  const auto device = make_device({.kind = "cpu", .threads = 2}, clock);
  const Feeds feeds = step_feeds(training.graph());
  const std::vector<Root> roots = roots_with_ids(training);
  std::vector<Value> values;
  values.reserve(roots.size());
  for (const Root& root : roots) values.push_back(root.value);
  const RewrittenGraph fast = rewrite(training.graph(), values, true, {}, nullptr);
  const std::vector<Tensor> results = evaluate_graph(fast.roots, feeds, *device);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : feeds) tensors.push_back({"feed/" + name, tensor});
  for (std::size_t i = 0; i < roots.size(); ++i) {
    tensors.push_back({roots[i].name, results[i]});
  }
  write_safetensors(fmt::format("{}/{}.safetensors", folder, model), tensors);
}

// Writes FOLDER/MODEL-torch.safetensors, with "torch/NAME", the variables as `paceline export`
// names them; "input"; and "logits", the model's inference from both.
void write_export(const std::string& folder, const std::string& model, const Graph& graph,
                  const std::string& input, const ModuleNames& modules) {
  static RealClock clock;
  const auto device = make_device({.kind = "cpu", .threads = 2}, clock);
  const Feeds feeds = trained_feeds(graph);
  std::vector<TensorInfo> variables;
  for (const auto& node : graph.nodes()) {
    if (!is_variable(*node)) continue;
    const Tensor& value = feeds.at(node->name());
    variables.push_back({node->name(), value.dtype(), value.shape()});
  }
  const Value logits = graph.find("logits");
  const RewrittenGraph fast = rewrite(graph, {&logits, 1}, true, {}, nullptr);
  std::vector<NamedTensor> tensors = {{"input", feeds.at(input)},
                                      {"logits", evaluate_graph(fast.roots, feeds, *device)[0]}};
  for (const TorchTensor& tensor : torch_tensors(variables, modules)) {
    tensors.push_back({"torch/" + tensor.name, to_torch(tensor, feeds.at(tensor.variable))});
  }
  write_safetensors(fmt::format("{}/{}-torch.safetensors", folder, model), tensors);
}

void write_exports(const std::string& folder) {
  Graph mlp, ptb, cifar10, resnet, fast;
  const MlpConfig of_mlp{.batch = 32, .hidden = 300};
  mlp.named("logits", build_mlp(mlp, of_mlp).predictions);
  write_export(folder, "mlp", mlp, "x", mlp_modules(of_mlp));
  const PtbConfig of_ptb =
      ptb_config(ptb_model().settings({{"hidden", "60"}, {"unroll", "10"}, {"batch", "8"}}));
  build_ptb(ptb, of_ptb, of_ptb.batch, of_ptb.unroll, false);
  write_export(folder, "ptb", ptb, "inputs", ptb_modules(of_ptb));
  build_cifar10(cifar10, 8);
  write_export(folder, "cifar10", cifar10, "images", cifar10_modules());
  build_resnet(resnet, 2, 8, false);
  write_export(folder, "resnet", resnet, "images", resnet_modules(2));
  const AirbenchConfig of_fast{.batch = 8};
  build_airbench_views(fast, of_fast);
  write_export(folder, "fast", fast, "images", airbench_modules(of_fast));
}

void write_steps(const std::string& folder) {
  Graph mlp, ptb, cifar10, resnet;
  const MlpConfig of_mlp{.batch = 32, .features = 64, .hidden = 256};
  write_step(folder, "mlp", minimize(build_mlp(mlp, of_mlp).loss, of_mlp.rule));
  const PtbConfig of_ptb =
      ptb_config(ptb_model().settings({{"hidden", "60"}, {"unroll", "10"}, {"batch", "8"}}));
  write_step(folder, "ptb",
             ptb_minimize(build_ptb(ptb, of_ptb, of_ptb.batch, of_ptb.unroll, true), of_ptb));
  write_step(folder, "cifar10", cifar10_minimize(build_cifar10(cifar10, 8), {.batch = 8}));
  write_step(folder, "resnet",
             resnet_minimize(build_resnet(resnet, 1, 8, true), {.batch = 8, .units = 1}));
}

}  // namespace
}  // namespace paceline::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: parity_step FOLDER\n");
    return 2;
  }
  try {
    paceline::testing::write_steps(argv[1]);
    paceline::testing::write_exports(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parity_step: %s\n", error.what());
    return 1;
  }
  return 0;
}
