// Each op of a graph for inference becomes one or more nodes of ONNX; gradients and losses are not
// exported. The graph is the one that the caller has built: no pass has fused its ops or changed
// its layouts. Its shapes are static. For each open dimension the graph is built again with another
// size; the dimensions of shapes that then differ are open.
#include "train/onnx_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/checkpoint_reader.h"
#include "graph/by_value.h"
#include "graph/open_graph.h"
#include "graph/passes.h"
#include "graph/sources.h"
#include "ops/axis.h"
#include "ops/image.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "params/variable_arrays.h"
#include "train/saved_values.h"

namespace paceline {
namespace {

using Numbers = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

[[noreturn]] void refuse(const Node& node, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[{}] {}: {}", node.op().name, node.name(), why));
}

std::vector<Value> values_of(std::span<const NamedValue> inputs,
                             std::span<const NamedValue> outputs) {
  std::vector<Value> values;
  for (const NamedValue& input : inputs) values.push_back(input.value);
  for (const NamedValue& output : outputs) values.push_back(output.value);
  return values;
}

// Makes inputs and outputs refer to the roots of `made`, a rewritten graph, which are the inputs
// and then the outputs, in their order.
InferenceGraph in_place_of(std::vector<NamedValue> inputs, std::vector<NamedValue> outputs,
                           RewrittenGraph made) {
  auto root = made.roots.begin();
  for (NamedValue& input : inputs) input.value = *root++;
  for (NamedValue& output : outputs) output.value = *root++;
  return {std::move(made.graph), std::move(inputs), std::move(outputs)};
}

// Turns a graph that trains into the one that serves.
InferenceGraph for_inference(InferenceGraph built) {
  if (!has_modes(*built.graph)) return built;
  const std::vector<Value> roots = values_of(built.inputs, built.outputs);
  return in_place_of(built.inputs, built.outputs, with_inference({*built.graph, roots, false}));
}

/// The graph for one size of each open dimension, and, for each open dimension, a graph in which
/// that dimension has another size.
class SizedGraphs {
 public:
  explicit SizedGraphs(const OnnxModel& model) : open_(model.open) {
    Numbers sizes(open_.size(), kSize);
    graphs_.push_back(for_inference(model.build(sizes)));
    for (std::int64_t& size : sizes) {
      size = kOtherSize;
      graphs_.push_back(for_inference(model.build(sizes)));
      size = kSize;
    }
    for (std::size_t i = 1; i < graphs_.size(); ++i) check_like_first(i);
  }

  const InferenceGraph& first() const { return graphs_[0]; }
  std::size_t open_count() const { return open_.size(); }
  /// Returns this node in the graph that has another size of open dimension i.
  const Node& other(const Node& node, std::size_t i) const {
    return *graphs_[i + 1].graph->nodes()[std::size_t(node.id())];
  }

  std::vector<OnnxDimension> dims(Value value) const {
    std::vector<OnnxDimension> dims;
    for (int axis = 0; axis < value.shape().rank(); ++axis) {
      OnnxDimension dim{.size = value.shape()[axis]};
      for (std::size_t i = 0; i < open_count(); ++i) {
        const std::int64_t size = other(value.node(), i).output(value.output()).shape()[axis];
        if (size == dim.size) continue;
        const bool is_it = !dim.open && dim.size == kSize && size == kOtherSize;
        dim.name = is_it ? open_[i] : "";
        dim.open = true;
      }
      dims.push_back(dim);
    }
    return dims;
  }

  /// Refuses a node whose attributes depend on an open dimension.
  void check_attributes(const Node& node) const {
    for (std::size_t i = 0; i < open_count(); ++i) {
      const auto& items = node.attributes().items();
      const auto& others = other(node, i).attributes().items();
      const bool same = std::ranges::equal(items, others, [](const auto& a, const auto& b) {
        return a.first == b.first && same_item(a.second, b.second);
      });
      if (!same) refuse(node, fmt::format("depends on the size of {}", open_[i]));
    }
  }

 private:
  static constexpr std::int64_t kSize = 2, kOtherSize = 3;

  static bool same_item(const Attributes::Item& a, const Attributes::Item& b) {
    const auto same_as_b = [&](const auto& item) {
      const auto* const other = std::get_if<std::decay_t<decltype(item)>>(&b);
      return other != nullptr && same(item, *other);
    };
    return std::visit(same_as_b, a);
  }
  template <typename T>
  static bool same(const T& a, const T& b) {
    return a == b;
  }
  static bool same(const Tensor& a, const Tensor& b) {
    return a.dtype() == b.dtype() && a.shape() == b.shape() &&
           std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }
  static bool same_kind(const ValueType& a, const ValueType& b) {
    return a.dtype == b.dtype && a.shape.rank() == b.shape.rank();
  }
  static bool same_place(Value a, Value b) {
    return a.node().id() == b.node().id() && a.output() == b.output();
  }

  void check_like_first(std::size_t i) const {
    const auto same = [](const auto& a, const auto& b) {
      return a->op().name == b->op().name && a->name() == b->name() &&
             std::ranges::equal(a->inputs(), b->inputs(), same_place) &&
             std::ranges::equal(a->outputs(), b->outputs(), same_kind);
    };
    if (std::ranges::equal(graphs_[0].graph->nodes(), graphs_[i].graph->nodes(), same)) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("ONNX: the model's graph has other nodes when {} has another size",
                            open_[i - 1]));
  }

  const std::vector<std::string> open_;
  std::vector<InferenceGraph> graphs_;
};

class GraphExport;

/// A node of the graph while it becomes nodes of ONNX.
class NodeExport {
 public:
  NodeExport(GraphExport& graph, const Node& node) : graph_(graph), node_(node) {}

  const Node& node() const { return node_; }
  template <typename T>
  const T& attribute(const char* name) const {
    return node_.attributes().get<T>(name);
  }
  const Shape& shape(int i) const { return node_.input(i).shape(); }
  std::string input(int i) const;
  Names inputs() const;

  /// Adds an ONNX node that makes output `i` of the exported node.
  void make(const char* type, const Names& inputs, const std::vector<OnnxAttribute>& with = {},
            int i = 0);
  /// Adds an ONNX node that makes all outputs of the exported node.
  void make_all(const char* type, const Names& inputs, const std::vector<OnnxAttribute>& with = {});
  /// Adds an ONNX node for a value that another one needs. Returns the name of its output, which
  /// ends with `suffix`.
  std::string step(const char* suffix, const char* type, const Names& inputs,
                   const std::vector<OnnxAttribute>& with = {});
  /// Adds an ONNX node with several outputs, one for each suffix, and returns their names.
  Names steps(std::initializer_list<const char*> suffixes, const char* type, const Names& inputs,
              const std::vector<OnnxAttribute>& with = {});
  std::string numbers(const char* suffix, const Numbers& numbers);
  /// Adds a constant number of the type of the exported node's first output, and returns its name.
  std::string scalar(const char* suffix, double number);
  std::string constant(const char* suffix, const Tensor& values);

  std::vector<OnnxDimension> dims(Value value) const;
  /// Returns the name of an int64 tensor whose elements are these sizes. If `finds_one`, the node
  /// that reads the tensor infers one open size by itself.
  std::string sizes(std::vector<OnnxDimension> dims, bool finds_one);
  const SizedGraphs& graphs() const;

 private:
  std::string name(std::string_view suffix) const {
    return fmt::format("{}:{}", node_.name(), suffix);
  }
  GraphExport& graph_;
  const Node& node_;
};

// Ops that have a counterpart without attributes.
constexpr std::pair<const char*, const char*> kRenamed[] = {
    {"abs", "Abs"},         {"add", "Add"},     {"bias", "Add"},
    {"div", "Div"},         {"erf", "Erf"},     {"exp", "Exp"},
    {"log", "Log"},         {"maximum", "Max"}, {"minimum", "Min"},
    {"mul", "Mul"},         {"pow", "Pow"},     {"relu", "Relu"},
    {"sigmoid", "Sigmoid"}, {"sign", "Sign"},   {"sqrt", "Sqrt"},
    {"sub", "Sub"},         {"tanh", "Tanh"},   {"stop_gradient", "Identity"},
};

void export_scale(NodeExport& e) {
  e.make("Mul", {e.input(0), e.scalar("factor", e.attribute<double>("factor"))});
}

void export_square(NodeExport& e) { e.make("Mul", {e.input(0), e.input(0)}); }

void export_leaky_relu(NodeExport& e) {
  e.make("LeakyRelu", e.inputs(), {{"alpha", e.attribute<double>("slope")}});
}

std::vector<OnnxAttribute> to_type(DType dtype) { return {{"to", onnx_type(dtype)}}; }

void export_cast(NodeExport& e) {
  e.make("Cast", e.inputs(), to_type(e.attribute<DType>("dtype")));
}

// Our comparisons give 1 and 0 in the type of their output; those of ONNX give bool.
void export_comparison(NodeExport& e, const char* type) {
  e.make("Cast", {e.step("holds", type, e.inputs())}, to_type(e.node().outputs()[0].dtype));
}
void export_equal(NodeExport& e) { export_comparison(e, "Equal"); }
void export_greater(NodeExport& e) { export_comparison(e, "Greater"); }
void export_greater_equal(NodeExport& e) { export_comparison(e, "GreaterOrEqual"); }

void export_where(NodeExport& e) {
  e.make("Where", {e.step("condition", "Cast", {e.input(0)}, to_type(DType::kBool)), e.input(1),
                   e.input(2)});
}

void export_reshape(NodeExport& e) {
  const std::vector<OnnxDimension> dims = e.dims(e.node().output(0));
  const bool empty = std::ranges::any_of(
      dims, [](const OnnxDimension& dim) { return !dim.open && dim.size == 0; });
  std::vector<OnnxAttribute> with;
  if (empty) with = {{"allowzero", std::int64_t{1}}};  // else a 0 would stand for the input's size
  e.make("Reshape", {e.input(0), e.sizes(dims, !empty)}, with);
}

void export_broadcast_to(NodeExport& e) {
  std::vector<OnnxDimension> dims = e.dims(e.node().output(0));
  const std::vector<OnnxDimension> given = e.dims(e.node().input(0));
  const std::size_t more = dims.size() - given.size();
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == dims[i + more]) dims[i + more] = {.size = 1};
  }
  e.make("Expand", {e.input(0), e.sizes(dims, false)});
}

void export_transpose(NodeExport& e) {
  e.make("Transpose", e.inputs(), {{"perm", e.attribute<Numbers>("permutation")}});
}

std::vector<OnnxAttribute> on_axis(const Node& node) {
  return {{"axis", std::int64_t(axis_of(node))}};
}

void export_concat(NodeExport& e) { e.make("Concat", e.inputs(), on_axis(e.node())); }

void export_split(NodeExport& e) {
  std::vector<OnnxAttribute> with = on_axis(e.node());
  with.push_back({"num_outputs", e.attribute<std::int64_t>("parts")});
  e.make_all("Split", e.inputs(), with);
}

void export_slice(NodeExport& e) {
  const Node& node = e.node();
  const Numbers& begin = e.attribute<Numbers>("begin");
  const Numbers& size = e.attribute<Numbers>("size");
  const std::vector<OnnxDimension> given = e.dims(node.input(0)), taken = e.dims(node.output(0));
  Numbers axes, starts, ends;
  for (std::size_t axis = 0; axis < begin.size(); ++axis) {
    bool moves = given[axis].open != taken[axis].open;
    for (std::size_t i = 0; i < e.graphs().open_count(); ++i) {
      const Node& other = e.graphs().other(node, i);
      moves = moves || other.attributes().get<Numbers>("begin")[axis] != begin[axis];
    }
    if (given[axis] == taken[axis] && !moves) continue;
    if (moves || given[axis].open) refuse(node, "takes a part of an open dimension");
    axes.push_back(std::int64_t(axis));
    starts.push_back(begin[axis]);
    ends.push_back(begin[axis] + size[axis]);
  }
  if (axes.empty()) return e.make("Identity", e.inputs());
  e.make("Slice", {e.input(0), e.numbers("starts", starts), e.numbers("ends", ends),
                   e.numbers("axes", axes)});
}

void export_pad(NodeExport& e) {
  Numbers pads = e.attribute<Numbers>("before");
  const Numbers& after = e.attribute<Numbers>("after");
  pads.insert(pads.end(), after.begin(), after.end());
  e.make("Pad", {e.input(0), e.numbers("pads", pads)});
}

// OneHot takes no scalar ids in ONNX, and no int32 ids in onnxruntime. So ids are compared with the
// number of each column.
void export_one_hot(NodeExport& e) {
  Tensor columns(DType::kInt32, {e.attribute<std::int64_t>("depth")});
  std::iota(columns.data<std::int32_t>().begin(), columns.data<std::int32_t>().end(), 0);
  const std::string ids = e.step("ids", "Unsqueeze", {e.input(0), e.numbers("last", {-1})});
  const std::string is_it = e.step("is_it", "Equal", {ids, e.constant("columns", columns)});
  e.make("Cast", {is_it}, to_type(e.attribute<DType>("dtype")));
}

void export_reduction(NodeExport& e, const char* type) {
  Names inputs = e.inputs();
  const Numbers& axes = e.attribute<Numbers>("axes");
  if (!axes.empty()) inputs.push_back(e.numbers("axes", axes));
  e.make(type, inputs, {{"keepdims", std::int64_t(e.attribute<bool>("keep"))}});
}
void export_reduce_sum(NodeExport& e) { export_reduction(e, "ReduceSum"); }
void export_reduce_mean(NodeExport& e) { export_reduction(e, "ReduceMean"); }
void export_reduce_max(NodeExport& e) { export_reduction(e, "ReduceMax"); }

void export_cumulative_sum(NodeExport& e) {
  const Tensor axis = Tensor::scalar(e.attribute<std::int64_t>("axis"));
  e.make("CumSum", {e.input(0), e.constant("axis", axis)},
         {{"exclusive", std::int64_t(e.attribute<bool>("exclusive"))},
          {"reverse", std::int64_t(e.attribute<bool>("reverse"))}});
}

void export_arg_max(NodeExport& e) {
  const std::string index = e.step("index", "ArgMax", e.inputs(),
                                   {{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{0}}});
  e.make("Cast", {index}, to_type(DType::kInt32));
}

void export_softmax(NodeExport& e) { e.make("Softmax", e.inputs(), {{"axis", std::int64_t{-1}}}); }

void export_layer_norm(NodeExport& e) {
  e.make("LayerNormalization", e.inputs(),
         {{"axis", std::int64_t{-1}}, {"epsilon", e.attribute<double>("epsilon")}});
}

// Returns the name of factor `i` of a matrix product, transposed if the attribute `transposed` is
// set.
std::string factor(NodeExport& e, int i, const char* transposed, const char* suffix) {
  if (!e.attribute<bool>(transposed)) return e.input(i);
  Numbers permutation;
  const int rank = e.shape(i).rank();
  for (int axis = 0; axis < rank; ++axis) permutation.push_back(axis);
  std::swap(permutation[std::size_t(rank) - 2], permutation[std::size_t(rank) - 1]);
  return e.step(suffix, "Transpose", {e.input(i)}, {{"perm", permutation}});
}

void export_matmul(NodeExport& e) {
  const std::string a = factor(e, 0, "transpose_a", "a"), b = factor(e, 1, "transpose_b", "b");
  e.make("MatMul", {a, b});
}

// Returns the attributes of a window. ONNX has the pads in the same order: top, left, bottom,
// right.
std::vector<OnnxAttribute> windows(const Node& node, std::array<std::int64_t, 2> size) {
  const Window2d window = Window2d::of(node.attributes());
  const auto numbers = [](const auto& some) { return Numbers(some.begin(), some.end()); };
  return {{"kernel_shape", numbers(size)},
          {"strides", numbers(window.strides)},
          {"pads", numbers(window.pads)},
          {"dilations", numbers(window.dilations)}};
}

void export_conv2d(NodeExport& e) {
  std::vector<OnnxAttribute> with = windows(e.node(), {e.shape(1)[2], e.shape(1)[3]});
  with.push_back({"group", e.attribute<std::int64_t>("groups")});
  e.make("Conv", e.inputs(), with);
}

void export_max_pool2d(NodeExport& e) {
  e.make("MaxPool", e.inputs(), windows(e.node(), Window2d::of(e.node().attributes()).size));
}

// Padding does not count in the mean. ONNX's AveragePool takes dilations only from opset 19 on.
void export_avg_pool2d(NodeExport& e) {
  std::vector<OnnxAttribute> with = windows(e.node(), Window2d::of(e.node().attributes()).size);
  with.pop_back();
  e.make("AveragePool", e.inputs(), with);
}

// ONNX divides alpha by the number of channels that are summed.
void export_local_response_norm(NodeExport& e) {
  const std::int64_t size = 2 * e.attribute<std::int64_t>("radius") + 1;
  e.make("LRN", e.inputs(),
         {{"size", size},
          {"bias", e.attribute<double>("bias")},
          {"alpha", e.attribute<double>("alpha") * double(size)},
          {"beta", e.attribute<double>("beta")}});
}

void export_batch_norm_inference(NodeExport& e) {
  e.make("BatchNormalization", e.inputs(), {{"epsilon", e.attribute<double>("epsilon")}});
}

void export_embedding_lookup(NodeExport& e) {
  e.make("Gather", e.inputs(), {{"axis", std::int64_t{0}}});
}

constexpr std::int64_t kGates = 4;

// Puts our gates i, j, f, o into ONNX's order i, o, f, c.
std::string reordered(NodeExport& e, const char* suffix, const std::string& gates,
                      std::int64_t axis) {
  return e.step(suffix, "Gather", {gates, e.numbers("gates", {0, 3, 2, 1})}, {{"axis", axis}});
}

// Turns our weights (I+H,4H) into ONNX's weights of the input (1,4H,I) and of the state (1,4H,H).
Names lstm_weights(NodeExport& e) {
  const std::int64_t rows = e.shape(3)[0], hidden = e.shape(1)[1];
  const std::string gates =
      e.step("w", "Reshape", {e.input(3), e.numbers("w_shape", {rows, kGates, hidden})});
  const std::string turned = e.step("w_turned", "Transpose", {reordered(e, "w_gates", gates, 1)},
                                    {{"perm", Numbers{1, 2, 0}}});
  const std::string joined =
      e.step("w_joined", "Reshape", {turned, e.numbers("w_joint", {1, kGates * hidden, rows})});
  return e.steps({"w_input", "w_state"}, "Split",
                 {joined, e.numbers("w_rows", {rows - hidden, hidden})},
                 {{"axis", std::int64_t{2}}});
}

// Turns our biases (4H) into ONNX's two in one tensor (1,8H); the second ones are zeros.
std::string lstm_biases(NodeExport& e) {
  const std::int64_t hidden = e.shape(1)[1];
  std::string gates = e.step("b", "Reshape", {e.input(4), e.numbers("b_shape", {kGates, hidden})});
  const double forget_bias = e.attribute<double>("forget_bias");
  const bool wide = e.node().outputs()[0].dtype == DType::kFloat64;
  if (forget_bias != 0) {
    const Tensor added = wide ? Tensor::of<double>({kGates, 1}, {0, 0, forget_bias, 0})
                              : Tensor::of<float>({kGates, 1}, {0, 0, float(forget_bias), 0});
    gates = e.step("b_forget", "Add", {gates, e.constant("forget_bias", added)});
  }
  const std::string joined =
      e.step("b_joined", "Reshape",
             {reordered(e, "b_gates", gates, 0), e.numbers("b_joint", {1, kGates * hidden})});
  const Tensor zeros(e.node().outputs()[0].dtype, {1, kGates * hidden});
  return e.step("b_both", "Concat", {joined, e.constant("b_zeros", zeros)},
                {{"axis", std::int64_t{1}}});
}

void export_lstm(NodeExport& e) {
  const Names weights = lstm_weights(e);
  const std::string biases = lstm_biases(e), first = e.numbers("first", {0});
  const std::string h = e.step("h", "Unsqueeze", {e.input(1), first});
  const std::string c = e.step("c", "Unsqueeze", {e.input(2), first});
  const Names made =
      e.steps({"y", "y_h", "y_c"}, "LSTM", {e.input(0), weights[0], weights[1], biases, "", h, c},
              {{"hidden_size", e.shape(1)[1]}});
  e.make("Squeeze", {made[0], e.numbers("second", {1})}, {}, 0);
  e.make("Squeeze", {made[1], first}, {}, 1);
  e.make("Squeeze", {made[2], first}, {}, 2);
}

using Mapping = void (*)(NodeExport&);

const std::map<std::string_view, Mapping>& mappings() {
  static const std::map<std::string_view, Mapping> table = {
      {"arg_max", export_arg_max},
      {"avg_pool2d", export_avg_pool2d},
      {"batch_matmul", export_matmul},
      {"batch_norm_inference", export_batch_norm_inference},
      {"broadcast_to", export_broadcast_to},
      {"cast", export_cast},
      {"concat", export_concat},
      {"conv2d", export_conv2d},
      {"cumulative_sum", export_cumulative_sum},
      {"embedding_lookup", export_embedding_lookup},
      {"equal", export_equal},
      {"greater", export_greater},
      {"greater_equal", export_greater_equal},
      {"layer_norm", export_layer_norm},
      {"leaky_relu", export_leaky_relu},
      {"local_response_norm", export_local_response_norm},
      {"lstm", export_lstm},
      {"matmul", export_matmul},
      {"max_pool2d", export_max_pool2d},
      {"one_hot", export_one_hot},
      {"pad", export_pad},
      {"reduce_max", export_reduce_max},
      {"reduce_mean", export_reduce_mean},
      {"reduce_sum", export_reduce_sum},
      {"reshape", export_reshape},
      {"scale", export_scale},
      {"slice", export_slice},
      {"softmax", export_softmax},
      {"split", export_split},
      {"square", export_square},
      {"transpose", export_transpose},
      {"where", export_where},
  };
  return table;
}

// True for an op whose attributes may depend on open dimensions.
bool follows_open_sizes(const Node& node) {
  const std::string& op = node.op().name;
  return op == "input" || op == "local" || op == "reshape" || op == "broadcast_to" || op == "slice";
}

/// Writes the graph node by node.
class GraphExport {
 public:
  GraphExport(const SizedGraphs& graphs, OnnxWriter& writer)
      : graphs_(graphs), writer_(writer), names_(*graphs.first().graph) {}

  OnnxFile run() {
    mark_needed();
    for (const NamedValue& input : graphs_.first().inputs) add_input(input);
    name_outputs();
    for (const auto& node : graphs_.first().graph->nodes()) {
      if (needed_[std::size_t(node->id())]) add(*node);
    }
    for (const NamedValue& output : graphs_.first().outputs) add_output(output);
    return file_;
  }

  const SizedGraphs& graphs() const { return graphs_; }

  std::string name_of(Value value) const {
    if (!names_[value].empty() && made_.contains(names_[value])) return names_[value];
    refuse(value.node(), fmt::format("ONNX has no counterpart of its output {}", value.output()));
  }
  /// Returns the name that the value gets, and takes it as take_name() does.
  std::string make_name(Value value) {
    std::string& name = names_[value];
    if (name.empty()) name = value.name();
    take_name(name, value.node());
    return name;
  }
  /// Notes that a value has the name. Throws kInvalidArgument when another value has it.
  void take_name(const std::string& name, const Node& node) {
    if (made_.insert(name).second) return;
    refuse(node, fmt::format("the ONNX model would have two values called {}", name));
  }
  void add_node(const std::string& name, const char* type, const Names& inputs,
                const Names& outputs, const std::vector<OnnxAttribute>& attributes) {
    writer_.node(name, type, inputs, outputs, attributes);
  }
  void add_constant(const Node& of, const std::string& name, const Tensor& values) {
    if (constants_.insert(name).second) {
      take_name(name, of);
      writer_.initializer(name, values);
    }
  }
  /// Returns the name of an int64 tensor (1) with the size of an open dimension, which is read from
  /// an input that has this dimension; "" if no input has it.
  std::string open_size(const Node& of, const std::string& open) {
    std::string name = "size of " + open;
    if (open.empty() || made_.contains(name)) return open.empty() ? "" : name;
    for (const NamedValue& input : graphs_.first().inputs) {
      const std::vector<OnnxDimension> dims = graphs_.dims(input.value);
      const auto found = std::ranges::find(dims, open, &OnnxDimension::name);
      if (found == dims.end()) continue;
      const std::int64_t axis = found - dims.begin();
      take_name(name, of);
      add_node(name, "Shape", {input.name}, {name}, {{"start", axis}, {"end", axis + 1}});
      return name;
    }
    return "";
  }

 private:
  void mark_needed() {
    const auto nodes = graphs_.first().graph->nodes();
    needed_.resize(nodes.size());
    for (const NamedValue& output : graphs_.first().outputs) {
      needed_[std::size_t(output.value.node().id())] = true;
    }
    for (std::size_t i = nodes.size(); i-- > 0;) {
      if (!needed_[i]) continue;
      for (const Value& input : nodes[i]->inputs()) needed_[std::size_t(input.node().id())] = true;
    }
  }

  void add_input(const NamedValue& input) {
    if (!is_fed(input.value.node()) || is_variable(input.value.node())) {
      refuse(input.value.node(), fmt::format("it cannot be the model's input {}", input.name));
    }
    names_[input.value] = input.name;
    make_name(input.value);
    const std::vector<OnnxDimension> dims = graphs_.dims(input.value);
    writer_.input(input.name, input.value.dtype(), dims);
    file_.inputs.push_back(described(input, dims));
  }

  // Gives a value the name of an output. An input, or a value that is an output already, keeps its
  // name, and add_output() gives it the further name by an Identity node.
  void name_outputs() {
    for (const NamedValue& output : graphs_.first().outputs) {
      std::string& name = names_[output.value];
      if (name.empty() && !is_source(output.value.node())) name = output.name;
    }
  }

  void add_output(const NamedValue& output) {
    const std::string name = name_of(output.value);
    if (name != output.name) {
      take_name(output.name, output.value.node());
      add_node(output.name, "Identity", {name}, {output.name}, {});
    }
    const std::vector<OnnxDimension> dims = graphs_.dims(output.value);
    writer_.output(output.name, output.value.dtype(), dims);
    file_.outputs.push_back(described(output, dims));
  }

  static std::string described(const NamedValue& value, std::span<const OnnxDimension> dims) {
    std::vector<std::string> sizes;
    for (const OnnxDimension& dim : dims) {
      sizes.push_back(!dim.open ? std::to_string(dim.size) : dim.name.empty() ? "?" : dim.name);
    }
    return fmt::format("{} {} ({})", value.name, paceline::name_of(value.value.dtype()),
                       fmt::join(sizes, ","));
  }

  void add(const Node& node) {
    if (!follows_open_sizes(node)) graphs_.check_attributes(node);
    if (is_source(node)) return add_source(node);
    for (const char* of_plan : {"channels_last", "bfloat16_products"}) {
      if (!node.attributes().has(of_plan) || !node.attributes().get<bool>(of_plan)) continue;
      refuse(node, fmt::format("{} is of a graph that was planned: export the one that was built",
                               of_plan));
    }
    NodeExport it(*this, node);
    const std::string& op = node.op().name;
    const auto renamed =
        std::ranges::find(kRenamed, op, &std::pair<const char*, const char*>::first);
    if (renamed != std::end(kRenamed)) return it.make(renamed->second, it.inputs());
    const auto mapping = mappings().find(op);
    if (mapping == mappings().end()) refuse(node, "this op cannot be exported to ONNX");
    mapping->second(it);
  }

  void add_source(const Node& node) {
    const Value value = node.output(0);
    if (is_variable(node)) {
      writer_.initializer({make_name(value), value.dtype(), value.shape()});
      ++file_.variables;
    } else if (is_constant(node)) {
      writer_.initializer(make_name(value), node.attributes().get<Tensor>("value"));
    } else if (names_[value].empty()) {
      refuse(node, "an output needs it, and it is no input of the exported model");
    }
  }

  const SizedGraphs& graphs_;
  OnnxWriter& writer_;
  ByValue<std::string> names_;
  std::vector<bool> needed_;         // by node
  std::set<std::string> made_;       // the names of the values that were added
  std::set<std::string> constants_;  // the names in made_ of constants that nodes have added
  OnnxFile file_;
};

std::string NodeExport::input(int i) const { return graph_.name_of(node_.input(i)); }

Names NodeExport::inputs() const {
  Names names;
  for (const Value& input : node_.inputs()) names.push_back(graph_.name_of(input));
  return names;
}

void NodeExport::make(const char* type, const Names& inputs, const std::vector<OnnxAttribute>& with,
                      int i) {
  const Value value = node_.output(i);
  graph_.add_node(value.name(), type, inputs, {graph_.make_name(value)}, with);
}

void NodeExport::make_all(const char* type, const Names& inputs,
                          const std::vector<OnnxAttribute>& with) {
  Names outputs;
  for (std::size_t i = 0; i < node_.outputs().size(); ++i) {
    outputs.push_back(graph_.make_name(node_.output(int(i))));
  }
  graph_.add_node(node_.name(), type, inputs, outputs, with);
}

std::string NodeExport::step(const char* suffix, const char* type, const Names& inputs,
                             const std::vector<OnnxAttribute>& with) {
  return steps({suffix}, type, inputs, with)[0];
}

Names NodeExport::steps(std::initializer_list<const char*> suffixes, const char* type,
                        const Names& inputs, const std::vector<OnnxAttribute>& with) {
  Names outputs;
  for (const char* suffix : suffixes) {
    outputs.push_back(name(suffix));
    graph_.take_name(outputs.back(), node_);
  }
  graph_.add_node(outputs[0], type, inputs, outputs, with);
  return outputs;
}

std::string NodeExport::constant(const char* suffix, const Tensor& values) {
  graph_.add_constant(node_, name(suffix), values);
  return name(suffix);
}

std::string NodeExport::numbers(const char* suffix, const Numbers& numbers) {
  return constant(suffix, Tensor::of<std::int64_t>({std::int64_t(numbers.size())}, numbers));
}

std::string NodeExport::scalar(const char* suffix, double number) {
  const bool wide = node_.outputs()[0].dtype == DType::kFloat64;
  return constant(suffix, wide ? Tensor::scalar(number) : Tensor::scalar(float(number)));
}

std::vector<OnnxDimension> NodeExport::dims(Value value) const {
  return graph_.graphs().dims(value);
}

const SizedGraphs& NodeExport::graphs() const { return graph_.graphs(); }

std::string NodeExport::sizes(std::vector<OnnxDimension> dims, bool finds_one) {
  if (finds_one) {
    // Lets the node infer a size that is computed from open dimensions, if there is one, since no
    // input shows such a size; else an open dimension.
    auto found = std::ranges::find_if(
        dims, [](const OnnxDimension& dim) { return dim.open && dim.name.empty(); });
    if (found == dims.end()) found = std::ranges::find(dims, true, &OnnxDimension::open);
    if (found != dims.end()) *found = {.size = -1};
  }
  Numbers all;
  Names parts;
  for (const OnnxDimension& dim : dims) all.push_back(dim.size);
  if (std::ranges::none_of(dims, &OnnxDimension::open)) return numbers("shape", all);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    parts.push_back(dims[i].open ? graph_.open_size(node_, dims[i].name)
                                 : numbers(fmt::format("shape{}", i).c_str(), {dims[i].size}));
    if (parts.back().empty()) refuse(node_, "its shape does not follow from the model's inputs");
  }
  return step("shape", "Concat", parts, {{"axis", std::int64_t{0}}});
}

/// Returns the model to be written for a graph. The model refers to the arguments, which must
/// outlive it.
OnnxModel model_of(const Graph& graph, const std::vector<NamedValue>& inputs,
                   const std::vector<NamedValue>& outputs) {
  for (const auto* const list : {&inputs, &outputs}) {
    for (const NamedValue& each : *list) {
      if (each.value && &each.value.graph() == &graph) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("ONNX: '{}' is no value of the graph", each.name));
    }
  }
  const std::vector<Value> roots = values_of(inputs, outputs);
  OnnxModel model{.open = open_names(values_of(inputs, {})), .build = {}};
  model.build = [&graph, &inputs, &outputs, roots,
                 open = model.open](std::span<const std::int64_t> sizes) {
    OpenSizes by_name;
    for (std::size_t i = 0; i < open.size(); ++i) by_name[open[i]] = sizes[i];
    const RewrittenGraph served = with_inference({graph, roots, false});
    SizedCopy copy(*served.graph, by_name);
    std::vector<Value> copies = copy.of(served.roots);
    return in_place_of(inputs, outputs, {copy.release(), std::move(copies)});
  };
  return model;
}

}  // namespace

OnnxFile write_onnx(const std::string& file, const Graph& graph,
                    const std::vector<NamedValue>& inputs, const std::vector<NamedValue>& outputs,
                    const std::string& checkpoint, EvaluateWith with) {
  return write_onnx(file, model_of(graph, inputs, outputs), checkpoint, with);
}

OnnxFile export_onnx(const OnnxModel& model, const OnnxWriter::Values& values, NewFile& file) {
  const SizedGraphs graphs(model);
  OnnxWriter writer;
  OnnxFile written = GraphExport(graphs, writer).run();
  for (const auto& [key, text] : model.metadata) writer.metadata(key, text);
  written.bytes = writer.write(file, values);
  return written;
}

OnnxFile write_onnx(const std::string& file, const OnnxModel& model, const std::string& checkpoint,
                    EvaluateWith with) {
  const CheckpointReader reader(find_checkpoint(checkpoint, WholeCheck::kChecksums).path);
  NewFile onnx(file);
  const auto values = [&](const TensorInfo& variable) {
    std::vector<VariableState> taken(1);
    const VariableSpec spec{
        .name = variable.name, .dtype = variable.dtype, .shape = variable.shape};
    const std::vector<std::string> lines = take_values(taken, {&spec, 1}, reader, {.with = with});
    if (!lines.empty()) refuse_other_model(reader.path(), lines);
    return taken[0].value;
  };
  OnnxFile written = export_onnx(model, values, onnx);
  onnx.commit();
  return written;
}
}  // namespace paceline
