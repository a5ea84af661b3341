// Turns images (N,C,H,W) into (N,H,W,C) for the ops of kImageOps and for the nodes between them:
// element-wise ops, casts, pad, slice, broadcast_to and reductions. Where any other node reads or
// makes an image, the pass adds a transpose with the attribute "reorder".
//
// Tensors stay row-major, so only this pass and the kernels of image ops know the layout. oneDNN
// 2.6 convolves such images without reordering them, at 0.85 to 1.08 times the speed of its own
// blocked layout (single passes over the convolutions of cifar10 and ResNet on one thread of a Zen
// 4; 0.97 over all convolutions of ResNet). --dry-run counts the reorders: a step of cifar10 has 3,
// a step of resnet 1.
#include <algorithm>
#include <array>
#include <optional>

#include "graph/fused_program.h"
#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

using Axes = std::vector<std::int64_t>;

/// An op that takes the attribute "channels_last". Its first `inputs` inputs and its first
/// `outputs` outputs are images.
struct ImageOp {
  std::string_view name;
  int inputs, outputs;
};
constexpr ImageOp kImageOps[] = {
    {"conv2d", 1, 1},
    {"conv2d_input_grad", 1, 1},
    {"conv2d_weights_grad", 2, 0},
    {"max_pool2d", 1, 2},
    {"max_pool2d_grad", 2, 1},
    {"avg_pool2d", 1, 1},
    {"avg_pool2d_grad", 1, 1},
    {"local_response_norm", 1, 1},
    {"local_response_norm_grad", 2, 1},
    {"batch_norm", 1, 1},
    {"batch_norm_grad", 2, 1},
    {"batch_norm_inference", 1, 1},
    {"batch_norm_inference_grad", 2, 1},
};

const ImageOp* find_image_op(const Node& node) {
  const auto found = std::ranges::find(kImageOps, node.op().name, &ImageOp::name);
  const Attributes& own = node.attributes();
  const bool done = own.has("channels_last") && own.get<bool>("channels_last");
  return found == std::end(kImageOps) || done ? nullptr : found;
}

bool is_image(const Shape& shape) { return shape.rank() == 4; }

/// Takes a number for each dimension of (N,C,H,W), and returns them in the order (N,H,W,C).
template <typename Numbers>
Axes moved(const Numbers& of) {
  return {of[0], of[2], of[3], of[1]};
}
/// Returns the index in (N,H,W,C) of an axis of (N,C,H,W).
std::int64_t moved_axis(std::int64_t axis) {
  constexpr std::array<std::int64_t, 4> kPlaces = {0, 3, 1, 2};
  return kPlaces[std::size_t(axis < 0 ? axis + 4 : axis)];
}

/// Returns the attributes with which a node that is no image op reads images (N,H,W,C), or nothing
/// if the node cannot read such images.
std::optional<Attributes> moved_attributes(const Node& node) {
  const std::string& op = node.op().name;
  Attributes attributes = node.attributes();
  if (find_fusable_op(op) != nullptr || op == "cast" || op == "stop_gradient") return attributes;
  if (op == "pad" || op == "slice") {
    for (const char* name : {"before", "after", "begin", "size"}) {
      if (attributes.has(name)) attributes.set(name, moved(attributes.get<Axes>(name)));
    }
    return attributes;
  }
  if (op == "broadcast_to") {
    attributes.set("shape", moved(attributes.get<Axes>("shape")));
    return attributes;
  }
  if (op != "reduce_sum" && op != "reduce_mean" && op != "reduce_max") return std::nullopt;
  Axes axes = attributes.get<Axes>("axes");
  std::ranges::transform(axes, axes.begin(), moved_axis);
  attributes.set("axes", axes);
  return attributes;
}

class LayoutPass {
 public:
  explicit LayoutPass(const RewriteSource& source)
      : last_(source.graph), first_(source.graph), wanted_(source.graph) {
    for (const Value& value : source.wanted()) wanted_[value] = true;
  }

  void visit(GraphCopy& copy, const Node& node) {
    if (const ImageOp* op = find_image_op(node)) {
      Attributes attributes = node.attributes();
      attributes.set("channels_last", true);
      add_moved(copy, node, attributes, op->inputs, op->outputs);
    } else if (goes_with_images(node)) {
      const bool result = is_image(node.outputs()[0].shape);
      add_moved(copy, node, *moved_attributes(node), int(node.inputs().size()), result ? 1 : 0);
    } else {
      for (const Value& input : node.inputs()) first_of(copy, input);
      copy.copy(node);
      for (int k = 0; k < int(node.outputs().size()); ++k) first_[node.output(k)] = true;
    }
  }

 private:
  /// Only the first `images` inputs and the first `results` outputs may be images.
  void add_moved(GraphCopy& copy, const Node& node, const Attributes& attributes, int images,
                 int results) {
    std::vector<Value> inputs;
    for (int i = 0; i < int(node.inputs().size()); ++i) {
      const Value input = node.input(i);
      const bool image = i < images && is_image(input.shape());
      inputs.push_back(image ? last_of(copy, input) : first_of(copy, input));
    }
    const Node& added = copy.graph().add(node.op().name, inputs, attributes, node.name());
    for (int k = 0; k < int(node.outputs().size()); ++k) {
      const Value old = node.output(k);
      if (k < results) {
        last_[old] = added.output(k);
        if (wanted_[old]) first_of(copy, old);
      } else {
        copy.replace(old, added.output(k));
        first_[old] = true;
      }
    }
  }

  bool lies_last_only(const Value& value) const { return bool(last_[value]) && !first_[value]; }

  // Whether the node can read images (N,H,W,C). An operand of an element-wise node must have the
  // output's shape or one element. A reduction to a lower rank must reduce the channels, or both
  // rows and columns: else the dimensions that remain would change their order.
  bool goes_with_images(const Node& node) const {
    if (node.inputs().empty() || node.outputs().size() != 1) return false;
    if (node.op().name == "broadcast_to") return spreads_channels(node);
    return (node.inputs().size() == 1 ? follows_its_input(node) : joins_images(node)) &&
           moved_attributes(node);
  }

  bool follows_its_input(const Node& node) const {
    if (!lies_last_only(node.input(0))) return false;
    return is_image(node.outputs()[0].shape) ||
           (node.attributes().has("axes") && keeps_order(node));
  }

  bool joins_images(const Node& node) const {
    const Shape& output = node.outputs()[0].shape;
    const auto by_element = [&](const Value& input) {
      const Shape& shape = input.shape();
      return shape == output || (shape.elements() == 1 && !is_image(shape));
    };
    const auto lies_last = [&](const Value& input) { return lies_last_only(input); };
    return is_image(output) && std::ranges::all_of(node.inputs(), by_element) &&
           std::ranges::any_of(node.inputs(), lies_last);
  }

  static bool spreads_channels(const Node& node) {
    const Shape& x = node.input(0).shape();
    return is_image(x) && is_image(node.outputs()[0].shape) && x[2] == 1 && x[3] == 1 && x[1] > 1;
  }

  static bool keeps_order(const Node& node) {
    const Axes& axes = node.attributes().get<Axes>("axes");
    const auto reduces = [&](std::int64_t axis) {
      return axes.empty() || std::ranges::find(axes, axis) != axes.end() ||
             std::ranges::find(axes, axis - 4) != axes.end();
    };
    return reduces(1) || (reduces(2) && reduces(3));
  }

  Value last_of(GraphCopy& copy, const Value& old) {
    Value& last = last_[old];
    if (!last) last = reordered(copy, old, copy.copy_of(old), {0, 2, 3, 1}, "/channels_last");
    return last;
  }
  Value first_of(GraphCopy& copy, const Value& old) {
    if (first_[old]) return copy.copy_of(old);
    first_[old] = true;
    copy.replace(old, reordered(copy, old, last_[old], {0, 3, 1, 2}, "/channels_first"));
    return copy.copy_of(old);
  }

  // With one channel or one pixel, the elements lie in the same order in both layouts.
  static Value reordered(GraphCopy& copy, const Value& old, Value x, const Axes& permutation,
                         const char* suffix) {
    const Shape& shape = old.shape();
    const std::string name = old.node().name() + suffix;
    if (shape[1] == 1 || shape[2] * shape[3] == 1) {
      Axes dims;
      for (const std::int64_t axis : permutation) dims.push_back(x.shape()[int(axis)]);
      return copy.graph().add("reshape", {&x, 1}, {{"shape", dims}}, name).output(0);
    }
    const Attributes attributes = {{"permutation", permutation}, {"reorder", true}};
    return copy.graph().add("transpose", {&x, 1}, attributes, name).output(0);
  }

  ByValue<Value> last_;   // its copy with channels last, if any
  ByValue<char> first_;   // whether it has a copy in its own layout
  ByValue<char> wanted_;  // whether it is wanted (RewriteSource)
};

}  // namespace

bool has_images(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const auto& node) { return find_image_op(*node) != nullptr; });
}

std::int64_t count_reorders(const Graph& graph) {
  return std::ranges::count_if(graph.nodes(),
                               [](const auto& node) { return node->attributes().has("reorder"); });
}

RewrittenGraph with_channels_last(const RewriteSource& source) {
  LayoutPass pass(source);
  return GraphCopy::run(source,
                        [&pass](GraphCopy& copy, const Node& node) { pass.visit(copy, node); });
}

}  // namespace paceline
