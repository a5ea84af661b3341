#include "kernels/evaluate.h"

#include <fmt/format.h>

#include <set>

#include "base/copy_bytes.h"
#include "graph/sources.h"
#include "graph/views.h"
#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {

namespace {

// Tensors where a device's kernels can use them: in place, or as copies in the device's memory.
class OnDevice {
 public:
  OnDevice(std::span<const Tensor> tensors, Device& device) : tensors_(tensors), device_(device) {
    for (const Tensor& tensor : tensors) views_.push_back(tensor.view());
    if (device.space().host()) return;
    for (TensorView& view : views_) {
      view.data = memories_.emplace_back(device.allocate(view.bytes())).data();
    }
  }
  void upload() {
    for (std::size_t i = 0; i < memories_.size(); ++i) {
      device_.upload(views_[i].data, tensors_[i].raw(), tensors_[i].bytes());
    }
  }
  void download() {
    for (std::size_t i = 0; i < memories_.size(); ++i) {
      device_.download(tensors_[i].raw(), views_[i].data, tensors_[i].bytes());
    }
  }
  std::span<const TensorView> views() const { return views_; }

 private:
  std::span<const Tensor> tensors_;
  Device& device_;
  std::vector<TensorView> views_;
  std::vector<Buffer> memories_;
};

std::set<int> needed_ids(std::span<const Value> roots) {
  std::set<int> ids;
  std::vector<const Node*> open;
  for (const Value& root : roots) open.push_back(&root.node());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!ids.insert(node->id()).second) continue;
    for (const Value& input : node->inputs()) open.push_back(&input.node());
  }
  return ids;
}

const Tensor& fed(const Node& node, const Feeds& feeds) {
  const auto feed = feeds.find(node.name());
  if (feed == feeds.end()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[evaluate] no value for {}", node.name()));
  }
  const ValueType type{feed->second.dtype(), feed->second.shape()};
  if (type != node.outputs()[0]) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[evaluate] {} is {}, fed with {}", node.name(),
                            node.outputs()[0].str(), type.str()));
  }
  return feed->second;
}

}  // namespace

std::vector<Tensor> evaluate_node(const Node& node, std::span<const Tensor> inputs, Device& device,
                                  const StepIdentity& step) {
  std::vector<Tensor> outputs;
  for (const ValueType& type : node.outputs()) outputs.emplace_back(type.dtype, type.shape);
  if (is_reshaped(node)) {
    copy_bytes(outputs[0].raw(), inputs[0].raw(), inputs[0].bytes());
    return outputs;
  }
  const std::unique_ptr<Kernel> kernel = device.make_kernel(node);
  const Buffer scratch = device.allocate(kernel->scratch_bytes());
  OnDevice in(inputs, device), out(outputs, device);
  in.upload();
  kernel->run({in.views(), out.views(), scratch.span(), step});
  out.download();
  device.synchronize();
  return outputs;
}

std::vector<Tensor> evaluate_graph(std::span<const Value> roots, const Feeds& feeds, Device& device,
                                   const StepIdentity& step) {
  std::map<int, std::vector<Tensor>> values;
  if (roots.empty()) return {};
  for (int id : needed_ids(roots)) {
    const Node& node = *roots[0].graph().nodes()[std::size_t(id)];
    std::vector<Tensor> inputs;
    for (const Value& input : node.inputs()) {
      inputs.push_back(values.at(input.node().id())[std::size_t(input.output())]);
    }
    if (is_fed(node)) {
      values[id] = {fed(node, feeds)};
    } else if (is_constant(node)) {
      values[id] = {node.attributes().get<Tensor>("value")};
    } else {
      values[id] = evaluate_node(node, inputs, device, step);
    }
  }
  std::vector<Tensor> results;
  for (const Value& root : roots) {
    results.push_back(values.at(root.node().id())[std::size_t(root.output())]);
  }
  return results;
}

}  // namespace paceline
