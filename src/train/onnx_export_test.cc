#include "train/onnx_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/temporary_folder.h"
#include "checkpoint/safetensors_writer.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/ops.h"
#include "summary/proto_reader.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The content of an ONNX file as lines of text, read by the field numbers of onnx.proto.
struct ReadModel {
  std::int64_t format = 0, opset = 0;
  std::vector<std::string> nodes;  // "y = Relu(x) alpha=0.1 axes=[1 2]"
  std::vector<std::string> node_names;
  std::vector<std::string> inputs;  // "x: 1 (batch,3)"
  std::vector<std::string> outputs;
  // "w: 1 (3,4)"; an int64 one with its values: "axes: [1 2]".
  std::vector<std::string> initializers;
  std::map<std::string, std::string> bytes;  // the values of initializers
  std::vector<std::string> metadata;         // "key=text"
};

std::string attribute_text(std::string_view message) {
  std::string name, value;
  std::vector<std::int64_t> integers;
  std::int64_t kind = 0;
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() == 1) name = reader.bytes();
    if (reader.field() == 2) value = fmt::format("{:g}", reader.float32());
    if (reader.field() == 3) value = fmt::format("{}", reader.integer());
    if (reader.field() == 8) integers.push_back(reader.integer());
    if (reader.field() == 20) kind = reader.integer();
  }
  return fmt::format(" {}={}", name,
                     kind == 7 ? fmt::format("[{}]", fmt::join(integers, " ")) : value);
}

void read_node(std::string_view message, ReadModel& model) {
  std::vector<std::string> inputs, outputs;
  std::string type, attributes;
  for (ProtoReader reader(message); reader.next();) {
    const std::string text(reader.bytes());
    if (reader.field() == 1) inputs.push_back(text);
    if (reader.field() == 2) outputs.push_back(text);
    if (reader.field() == 3) model.node_names.push_back(text);
    if (reader.field() == 4) type = text;
    if (reader.field() == 5) attributes += attribute_text(text);
  }
  model.nodes.push_back(fmt::format("{} = {}({}){}", fmt::join(outputs, ", "), type,
                                    fmt::join(inputs, ", "), attributes));
}

std::string dims_text(std::string_view shape) {
  std::vector<std::string> dims;
  for (ProtoReader reader(shape); reader.next();) {
    std::string text = "?";
    for (ProtoReader dim(reader.bytes()); dim.next();) {
      text = dim.field() == 1 ? std::to_string(dim.integer()) : std::string(dim.bytes());
    }
    dims.push_back(text);
  }
  return fmt::format("({})", fmt::join(dims, ","));
}

std::string value_text(std::string_view message) {
  std::string name, text;
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() == 1) name = reader.bytes();
    if (reader.field() != 2) continue;
    ProtoReader type(reader.bytes());
    type.next();
    for (ProtoReader tensor(type.bytes()); tensor.next();) {
      text +=
          tensor.field() == 1 ? fmt::format("{} ", tensor.integer()) : dims_text(tensor.bytes());
    }
  }
  return name + ": " + text;
}

std::string initializer_text(std::string_view message, ReadModel& model) {
  std::vector<std::int64_t> dims, values;
  std::int64_t type = 0;
  std::string name;
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() == 1) dims.push_back(reader.integer());
    if (reader.field() == 2) type = reader.integer();
    if (reader.field() == 8) name = reader.bytes();
    if (reader.field() != 9) continue;
    model.bytes[name] = reader.bytes();
    if (type != 7) continue;
    values.resize(reader.bytes().size() / sizeof(std::int64_t));
    std::memcpy(values.data(), reader.bytes().data(), reader.bytes().size());
  }
  if (type == 7) return fmt::format("{}: [{}]", name, fmt::join(values, " "));
  return fmt::format("{}: {} ({})", name, type, fmt::join(dims, ","));
}

void read_graph(std::string_view message, ReadModel& model) {
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() == 1) read_node(reader.bytes(), model);
    if (reader.field() == 5) model.initializers.push_back(initializer_text(reader.bytes(), model));
    if (reader.field() == 11) model.inputs.push_back(value_text(reader.bytes()));
    if (reader.field() == 12) model.outputs.push_back(value_text(reader.bytes()));
  }
}

std::string pair_text(std::string_view message, const char* between) {
  std::vector<std::string> texts;
  for (ProtoReader reader(message); reader.next();) texts.emplace_back(reader.bytes());
  return fmt::format("{}", fmt::join(texts, between));
}

ReadModel read_model(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  ReadModel model;
  for (ProtoReader reader(bytes); reader.next();) {
    if (reader.field() == 1) model.format = reader.integer();
    if (reader.field() == 7) read_graph(reader.bytes(), model);
    if (reader.field() == 14) model.metadata.push_back(pair_text(reader.bytes(), "="));
    if (reader.field() != 8) continue;
    ProtoReader opset(reader.bytes());
    opset.next();
    model.opset = opset.integer();
  }
  return model;
}

// Builds a graph, with its inputs and outputs, for sizes of the open dimensions batch and time.
using Build = std::function<InferenceGraph(std::int64_t batch, std::int64_t time)>;

InferenceGraph empty_graph() { return {.graph = std::make_unique<Graph>()}; }

OnnxModel model_of(const Build& build) {
  return {.open = {"batch", "time"}, .build = [build](std::span<const std::int64_t> sizes) {
            return build(sizes[0], sizes[1]);
          }};
}

class OnnxExport : public ::testing::Test {
 protected:
  OnnxFile write(const OnnxModel& model) {
    NewFile file(path());
    OnnxFile written = export_onnx(
        model, [](const TensorInfo& info) { return Tensor(info.dtype, info.shape); }, file);
    file.commit();
    return written;
  }
  ReadModel exported(const Build& build) {
    write(model_of(build));
    return read_model(path());
  }
  // Returns the ONNX nodes of one op on x, whose shape is (batch, rest…).
  std::vector<std::string> nodes_of(const std::vector<std::int64_t>& rest,
                                    const std::function<Value(Value)>& op,
                                    DType dtype = DType::kFloat32) {
    return of_op(rest, op, dtype).nodes;
  }
  ReadModel of_op(const std::vector<std::int64_t>& rest, const std::function<Value(Value)>& op,
                  DType dtype = DType::kFloat32) {
    return exported([&](std::int64_t batch, std::int64_t) {
      InferenceGraph made = empty_graph();
      std::vector<std::int64_t> dims = {batch};
      dims.insert(dims.end(), rest.begin(), rest.end());
      const Value x = made.graph->input("x", Shape(dims), dtype);
      made.inputs = {{"x", x}};
      made.outputs = {{"y", op(x)}};
      return made;
    });
  }
  std::string error_of(const std::vector<std::int64_t>& rest,
                       const std::function<Value(Value)>& op) {
    try {
      of_op(rest, op);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "no error";
  }
  std::string path() const { return folder_.path("model.onnx"); }
  TemporaryFolder folder_;
};

TEST_F(OnnxExport, HasNamesTypesAndOpenDimensions) {
  OnnxModel model = model_of([](std::int64_t batch, std::int64_t) {
    InferenceGraph made = empty_graph();
    Graph& graph = *made.graph;
    const Value x = graph.input("x", {batch, 4});
    made.inputs = {{"rows", x}};
    made.outputs = {{"probabilities", softmax(dense(x, 3, "layer"))}};
    relu(x);  // nothing needs it
    return made;
  });
  model.metadata = {{"model", "mlp"}};
  const OnnxFile written = write(model);
  EXPECT_THAT(written.inputs, ElementsAre("rows float32 (batch,4)"));
  EXPECT_THAT(written.outputs, ElementsAre("probabilities float32 (batch,3)"));
  EXPECT_EQ(written.variables, 2);
  EXPECT_EQ(written.bytes, std::filesystem::file_size(path()));
  const ReadModel read = read_model(path());
  EXPECT_EQ(read.format, 8);
  EXPECT_EQ(read.opset, 18);
  EXPECT_THAT(read.inputs, ElementsAre("rows: 1 (batch,4)"));
  EXPECT_THAT(read.outputs, ElementsAre("probabilities: 1 (batch,3)"));
  EXPECT_THAT(read.initializers, ElementsAre("layer/w: 1 (4,3)", "layer/b: 1 (3)"));
  EXPECT_THAT(read.metadata, ElementsAre("model=mlp"));
  EXPECT_THAT(read.nodes, ElementsAre("layer/matmul = MatMul(rows, layer/w)",
                                      "layer/bias = Add(layer/matmul, layer/b)",
                                      "probabilities = Softmax(layer/bias) axis=-1"));
  EXPECT_THAT(read.node_names, ElementsAre("layer/matmul", "layer/bias", "softmax"));
}

TEST_F(OnnxExport, AGraphThatTrainsIsExportedAsItServes) {
  const ReadModel read = exported([](std::int64_t batch, std::int64_t) {
    InferenceGraph made = empty_graph();
    Graph& graph = *made.graph;
    const Value x = graph.input("x", {batch, 3, 1, 1});
    const Value labels = graph.input("labels", {batch}, DType::kInt32);
    const Value images = dropout(relu(batch_norm(x, "norm")), 0.5);
    const Value logits = dense(reshape(images, {batch, 3}), 3, "layer");
    minimize(reduce_mean(softmax_cross_entropy(logits, labels)), Sgd{});
    made.inputs = {{"images", x}};
    made.outputs = {{"probabilities", softmax(logits)}};
    return made;
  });
  EXPECT_THAT(read.inputs, ElementsAre("images: 1 (batch,3,1,1)"));
  EXPECT_THAT(read.outputs, ElementsAre("probabilities: 1 (batch,3)"));
  EXPECT_THAT(read.nodes,
              ElementsAre(testing::HasSubstr("= BatchNormalization(images, norm/gains, "
                                             "norm/offsets, norm/moving_mean, "
                                             "norm/moving_variance)"),
                          testing::HasSubstr("= Relu("), testing::HasSubstr("= Reshape("),
                          testing::HasSubstr("= MatMul("), testing::HasSubstr("= Add("),
                          testing::HasSubstr("probabilities = Softmax(")));
}

TEST_F(OnnxExport, AGraphWithOpenDimensionsIsWrittenAsItIs) {
  Graph graph;
  const auto batch = graph.open("batch"), time = graph.open("time");
  const Value x = graph.input("x", {batch, time, 6});
  const Value rows = dense(reshape(x, {batch * time, 6}), 3, "layer");
  const Value y = softmax(reshape(dropout(rows, 0.5), {batch, time, 3}));
  RunOptions run;
  run.quiet = true;
  run.out = folder_.path("run");
  run.steps = 1;
  Graph trained;
  const Value fixed = trained.input("x", {2, 6});
  Session session(minimize(reduce_mean(dense(fixed, 3, "layer")), Sgd{}), Cluster(), run);
  session.run([&](Feed& feed) { feed.normal(fixed); });
  const OnnxFile written =
      write_onnx(path(), graph, {{"words", x}}, {{"probabilities", y}}, run.out);
  EXPECT_THAT(written.inputs, ElementsAre("words float32 (batch,time,6)"));
  EXPECT_THAT(written.outputs, ElementsAre("probabilities float32 (batch,time,3)"));
  EXPECT_THAT(read_model(path()).nodes,
              testing::Not(testing::Contains(testing::HasSubstr("ropout"))));
}

TEST_F(OnnxExport, OfElementwiseOps) {
  const auto of = [&](const std::function<Value(Value)>& op) { return nodes_of({4}, op); };
  EXPECT_THAT(of(relu), ElementsAre("y = Relu(x)"));
  EXPECT_THAT(of(sigmoid), ElementsAre("y = Sigmoid(x)"));
  EXPECT_THAT(of([](Value x) { return tanh(x); }), ElementsAre("y = Tanh(x)"));
  EXPECT_THAT(of([](Value x) { return exp(x); }), ElementsAre("y = Exp(x)"));
  EXPECT_THAT(of([](Value x) { return log(x); }), ElementsAre("y = Log(x)"));
  EXPECT_THAT(of([](Value x) { return sqrt(x); }), ElementsAre("y = Sqrt(x)"));
  EXPECT_THAT(of([](Value x) { return abs(x); }), ElementsAre("y = Abs(x)"));
  EXPECT_THAT(of(sign), ElementsAre("y = Sign(x)"));
  EXPECT_THAT(of([](Value x) { return erf(x); }), ElementsAre("y = Erf(x)"));
  EXPECT_THAT(of(square), ElementsAre("y = Mul(x, x)"));
  EXPECT_THAT(of(stop_gradient), ElementsAre("y = Identity(x)"));
  EXPECT_THAT(of([](Value x) { return leaky_relu(x, 0.5); }),
              ElementsAre("y = LeakyRelu(x) alpha=0.5"));
  EXPECT_THAT(of([](Value x) { return scale(x, 3); }), ElementsAre("y = Mul(x, scale:factor)"));
  EXPECT_THAT(of([](Value x) { return cast(x, DType::kInt64); }), ElementsAre("y = Cast(x) to=7"));
  EXPECT_THAT(of([](Value x) { return add(x, x); }), ElementsAre("y = Add(x, x)"));
  EXPECT_THAT(of([](Value x) { return sub(x, x); }), ElementsAre("y = Sub(x, x)"));
  EXPECT_THAT(of([](Value x) { return mul(x, x); }), ElementsAre("y = Mul(x, x)"));
  EXPECT_THAT(of([](Value x) { return div(x, x); }), ElementsAre("y = Div(x, x)"));
  EXPECT_THAT(of([](Value x) { return pow(x, x); }), ElementsAre("y = Pow(x, x)"));
  EXPECT_THAT(of([](Value x) { return maximum(x, x); }), ElementsAre("y = Max(x, x)"));
  EXPECT_THAT(of([](Value x) { return minimum(x, x); }), ElementsAre("y = Min(x, x)"));
  EXPECT_THAT(of([](Value x) { return greater(x, x); }),
              ElementsAre("greater:holds = Greater(x, x)", "y = Cast(greater:holds) to=1"));
  EXPECT_THAT(of([](Value x) { return greater_equal(x, x); }),
              ElementsAre("greater_equal:holds = GreaterOrEqual(x, x)",
                          "y = Cast(greater_equal:holds) to=1"));
  EXPECT_THAT(of([](Value x) { return equal(x, x); }),
              ElementsAre("equal:holds = Equal(x, x)", "y = Cast(equal:holds) to=1"));
  EXPECT_THAT(of([](Value x) { return where(x, x, x); }),
              ElementsAre("where:condition = Cast(x) to=9", "y = Where(where:condition, x, x)"));
}

TEST_F(OnnxExport, OfOpsThatChangeShapes) {
  EXPECT_THAT(nodes_of({4, 5},
                       [](Value x) {
                         return transpose(x, {2, 0, 1});
                       }),
              ElementsAre("y = Transpose(x) perm=[2 0 1]"));
  EXPECT_THAT(nodes_of({4},
                       [](Value x) {
                         return concat(std::vector{x, x}, -1);
                       }),
              ElementsAre("y = Concat(x, x) axis=1"));
  EXPECT_THAT(nodes_of({4}, [](Value x) { return split(x, 2, 1)[1]; }),
              ElementsAre("split, y = Split(x) axis=1 num_outputs=2"));
  const ReadModel part = of_op({4}, [](Value x) { return slice(x, {0, 1}, {x.shape()[0], 2}); });
  EXPECT_THAT(part.nodes, ElementsAre("y = Slice(x, slice:starts, slice:ends, slice:axes)"));
  EXPECT_THAT(part.initializers,
              ElementsAre("slice:starts: [1]", "slice:ends: [3]", "slice:axes: [1]"));
  EXPECT_THAT(nodes_of({4},
                       [](Value x) {
                         return slice(x, {0, 0}, {x.shape()[0], 4});
                       }),
              ElementsAre("y = Identity(x)"));
  EXPECT_THAT(of_op({4},
                    [](Value x) {
                      return pad(x, {0, 1}, {0, 2});
                    })
                  .initializers,
              ElementsAre("pad:pads: [0 1 0 2]"));
  const ReadModel hot = of_op(
      {4}, [](Value x) { return one_hot(x, 7); }, DType::kInt32);
  EXPECT_THAT(hot.nodes, ElementsAre("one_hot:ids = Unsqueeze(x, one_hot:last)",
                                     "one_hot:is_it = Equal(one_hot:ids, one_hot:columns)",
                                     "y = Cast(one_hot:is_it) to=1"));
  EXPECT_THAT(hot.initializers, ElementsAre("one_hot:last: [-1]", "one_hot:columns: 6 (7)"));
}

TEST_F(OnnxExport, ReshapesToOpenSizes) {
  const ReadModel flat = of_op({4, 5}, [](Value x) { return reshape(x, {x.shape()[0], -1}); });
  EXPECT_THAT(flat.nodes, ElementsAre("y = Reshape(x, reshape:shape)"));
  EXPECT_THAT(flat.initializers, ElementsAre("reshape:shape: [-1 20]"));
  EXPECT_THAT(nodes_of({0},
                       [](Value x) {
                         return reshape(x, {0, 4});
                       }),
              ElementsAre("y = Reshape(x, reshape:shape) allowzero=1"));
  // (time·batch,6) → (time,batch,6): one of the two sizes is inferred, the other is read from the
  // input.
  const ReadModel two = exported([](std::int64_t batch, std::int64_t time) {
    InferenceGraph made = empty_graph();
    const Value x = made.graph->input("x", {time, batch, 6});
    made.inputs = {{"x", x}};
    const Value rows = reshape(x, {time * batch, 6});
    made.outputs = {{"rows", rows}, {"y", reshape(relu(rows), {time, batch, 6})}};
    return made;
  });
  EXPECT_THAT(two.outputs, ElementsAre("rows: 1 (?,6)", "y: 1 (time,batch,6)"));
  EXPECT_THAT(
      two.nodes,
      ElementsAre("rows = Reshape(x, reshape:shape)", "relu = Relu(rows)",
                  "size of batch = Shape(x) start=1 end=2",
                  "reshape_1:shape = Concat(reshape_1:shape0, size of batch, reshape_1:shape2) "
                  "axis=0",
                  "y = Reshape(relu, reshape_1:shape)"));
  EXPECT_THAT(two.initializers, ElementsAre("reshape:shape: [-1 6]", "reshape_1:shape0: [-1]",
                                            "reshape_1:shape2: [6]"));
}

TEST_F(OnnxExport, BroadcastsToOpenSizes) {
  const auto spread = [](Value x, const Shape& to) {
    return x.graph().apply(
        "broadcast_to", {x},
        {{"shape", std::vector<std::int64_t>(to.dims().begin(), to.dims().end())}});
  };
  const ReadModel kept = of_op({1}, [&](Value x) { return spread(x, {5, x.shape()[0], 4}); });
  EXPECT_THAT(kept.nodes, ElementsAre("y = Expand(x, broadcast_to:shape)"));
  EXPECT_THAT(kept.initializers, ElementsAre("broadcast_to:shape: [5 1 4]"));
  const ReadModel made = of_op({4}, [&](Value x) {
    return x + spread(x.graph().variable("w", {1, 4}), {x.shape()[0], 4});
  });
  EXPECT_THAT(
      made.nodes,
      ElementsAre("size of batch = Shape(x) start=0 end=1",
                  "broadcast_to:shape = Concat(size of batch, broadcast_to:shape1) axis=0",
                  "broadcast_to = Expand(w, broadcast_to:shape)", "y = Add(x, broadcast_to)"));
}

TEST_F(OnnxExport, OfReductionsAndRows) {
  const ReadModel sum = of_op({4, 5}, [](Value x) { return reduce_sum(x, {1, -1}, true); });
  EXPECT_THAT(sum.nodes, ElementsAre("y = ReduceSum(x, reduce_sum:axes) keepdims=1"));
  EXPECT_THAT(sum.initializers, ElementsAre("reduce_sum:axes: [1 -1]"));
  EXPECT_THAT(nodes_of({4}, [](Value x) { return reduce_mean(x); }),
              ElementsAre("y = ReduceMean(x) keepdims=0"));
  EXPECT_THAT(nodes_of({4}, [](Value x) { return reduce_max(x, {1}); }),
              ElementsAre("y = ReduceMax(x, reduce_max:axes) keepdims=0"));
  EXPECT_THAT(nodes_of({4}, [](Value x) { return cumulative_sum(x, 1, true, false); }),
              ElementsAre("y = CumSum(x, cumulative_sum:axis) exclusive=1 reverse=0"));
  EXPECT_THAT(nodes_of({4}, arg_max), ElementsAre("arg_max:index = ArgMax(x) axis=1 keepdims=0",
                                                  "y = Cast(arg_max:index) to=6"));
  EXPECT_THAT(nodes_of({4}, [](Value x) { return layer_norm(x, "norm", 0.25); }),
              ElementsAre("y = LayerNormalization(x, norm/gains, norm/offsets) axis=-1 "
                          "epsilon=0.25"));
}

TEST_F(OnnxExport, OfMatrices) {
  EXPECT_THAT(nodes_of({4}, [](Value x) { return matmul(x, x, true, false); }),
              ElementsAre("matmul:a = Transpose(x) perm=[1 0]", "y = MatMul(matmul:a, x)"));
  EXPECT_THAT(
      nodes_of({4, 5}, [](Value x) { return matmul(x, x, false, true); }),
      ElementsAre("batch_matmul:b = Transpose(x) perm=[0 2 1]", "y = MatMul(x, batch_matmul:b)"));
  EXPECT_THAT(nodes_of({4}, [](Value x) { return bias(x, x.graph().variable("b", {4})); }),
              ElementsAre("y = Add(x, b)"));
  EXPECT_THAT(nodes_of(
                  {},
                  [](Value x) {
                    return embedding_lookup(x.graph().variable("words", {7, 3}), x);
                  },
                  DType::kInt32),
              ElementsAre("y = Gather(words, x) axis=0"));
}

TEST_F(OnnxExport, OfImages) {
  // SAME padding with stride 2 adds the odd row and column at the bottom and on the right.
  EXPECT_THAT(nodes_of({3, 8, 9},
                       [](Value x) {
                         Graph& graph = x.graph();
                         return conv2d(x, graph.variable("w", {6, 1, 3, 5}),
                                       graph.variable("b", {6}), {.strides = {2, 1}, .groups = 3});
                       }),
              ElementsAre("y = Conv(x, w, b) kernel_shape=[3 5] strides=[2 1] pads=[0 2 1 2] "
                          "dilations=[1 1] group=3"));
  EXPECT_THAT(nodes_of({3, 8, 8},
                       [](Value x) {
                         return max_pool2d(x, {.size = {3, 3}, .padding = Padding::same()});
                       }),
              ElementsAre("y = MaxPool(x) kernel_shape=[3 3] strides=[2 2] pads=[0 0 1 1] "
                          "dilations=[1 1]"));
  EXPECT_THAT(nodes_of({3, 8, 8}, [](Value x) { return avg_pool2d(x); }),
              ElementsAre("y = AveragePool(x) kernel_shape=[2 2] strides=[2 2] pads=[0 0 0 0]"));
  EXPECT_THAT(nodes_of({3, 8, 8},
                       [](Value x) {
                         return local_response_norm(
                             x, {.radius = 2, .bias = 1, .alpha = 0.5, .beta = 0.75});
                       }),
              ElementsAre("y = LRN(x) size=5 bias=1 alpha=2.5 beta=0.75"));
  EXPECT_THAT(
      nodes_of({3, 8, 8},
               [](Value x) { return batch_norm(x, "norm", {.training = false, .epsilon = 0.5}); }),
      ElementsAre("y = BatchNormalization(x, norm/gains, norm/offsets, norm/moving_mean, "
                  "norm/moving_variance) epsilon=0.5"));
}

TEST_F(OnnxExport, OfAnLstmWithItsStates) {
  const ReadModel read = exported([](std::int64_t batch, std::int64_t time) {
    InferenceGraph made = empty_graph();
    Graph& graph = *made.graph;
    const Value x = graph.input("x", {time, batch, 3});
    const Value h = graph.local("h", {batch, 5}), c = graph.local("c", {batch, 5});
    const Value w = graph.variable("w", {8, 20}), b = graph.variable("b", {20});
    const LstmOutput out = lstm(x, h, c, w, b, 1.0);
    made.inputs = {{"x", x}, {"h", h}, {"c", c}};
    made.outputs = {{"y", out.outputs}, {"h_next", out.h}, {"c_next", out.c}};
    return made;
  });
  EXPECT_THAT(read.inputs, ElementsAre("x: 1 (time,batch,3)", "h: 1 (batch,5)", "c: 1 (batch,5)"));
  // Paceline's gates i, j, f, o stand in ONNX's order i, o, f, c. The rows of the input come first,
  // then those of the state.
  EXPECT_THAT(
      read.initializers,
      ElementsAre("w: 1 (8,20)", "b: 1 (20)", "lstm:w_shape: [8 4 5]", "lstm:gates: [0 3 2 1]",
                  "lstm:w_joint: [1 20 8]", "lstm:w_rows: [3 5]", "lstm:b_shape: [4 5]",
                  "lstm:forget_bias: 1 (4,1)", "lstm:b_joint: [1 20]", "lstm:b_zeros: 1 (1,20)",
                  "lstm:first: [0]", "lstm:second: [1]"));
  EXPECT_THAT(read.outputs,
              ElementsAre("y: 1 (time,batch,5)", "h_next: 1 (batch,5)", "c_next: 1 (batch,5)"));
  EXPECT_THAT(
      read.nodes,
      ElementsAre(
          "lstm:w = Reshape(w, lstm:w_shape)", "lstm:w_gates = Gather(lstm:w, lstm:gates) axis=1",
          "lstm:w_turned = Transpose(lstm:w_gates) perm=[1 2 0]",
          "lstm:w_joined = Reshape(lstm:w_turned, lstm:w_joint)",
          "lstm:w_input, lstm:w_state = Split(lstm:w_joined, lstm:w_rows) axis=2",
          "lstm:b = Reshape(b, lstm:b_shape)", "lstm:b_forget = Add(lstm:b, lstm:forget_bias)",
          "lstm:b_gates = Gather(lstm:b_forget, lstm:gates) axis=0",
          "lstm:b_joined = Reshape(lstm:b_gates, lstm:b_joint)",
          "lstm:b_both = Concat(lstm:b_joined, lstm:b_zeros) axis=1",
          "lstm:h = Unsqueeze(h, lstm:first)", "lstm:c = Unsqueeze(c, lstm:first)",
          "lstm:y, lstm:y_h, lstm:y_c = LSTM(x, lstm:w_input, lstm:w_state, lstm:b_both, "
          ", lstm:h, lstm:c) hidden_size=5",
          "y = Squeeze(lstm:y, lstm:second)", "h_next = Squeeze(lstm:y_h, lstm:first)",
          "c_next = Squeeze(lstm:y_c, lstm:first)"));
}

TEST_F(OnnxExport, GivesOneValueSeveralNames) {
  const ReadModel read = exported([](std::int64_t batch, std::int64_t) {
    InferenceGraph made = empty_graph();
    const Value x = made.graph->input("x", {batch});
    const Value y = relu(x);
    made.inputs = {{"x", x}};
    made.outputs = {{"y", y}, {"again", y}, {"as it was", x}};
    return made;
  });
  EXPECT_THAT(read.nodes,
              ElementsAre("y = Relu(x)", "again = Identity(y)", "as it was = Identity(x)"));
}

TEST_F(OnnxExport, NamesTheOpThatCannotBeExported) {
  EXPECT_EQ(error_of({4}, [](Value x) { return mean_squared_error(x, x); }),
            "[mean_squared_error] mean_squared_error: this op cannot be exported to ONNX");
  EXPECT_EQ(error_of({3, 8, 8},
                     [](Value x) {
                       // This batch norm has no variables that follow its statistics.
                       Graph& graph = x.graph();
                       return graph.apply("batch_norm",
                                          {x, graph.variable("g", {3}), graph.variable("o", {3})},
                                          {{"epsilon", 1e-3}});
                     }),
            "[batch_norm] batch_norm: this op cannot be exported to ONNX");
  EXPECT_EQ(error_of({8}, [](Value x) { return layer_norm(x, "n").node().output(1); }),
            "[layer_norm] n/layer_norm: ONNX has no counterpart of its output 1");
  EXPECT_EQ(error_of({3, 8, 8},
                     [](Value x) {
                       Attributes attributes = max_pool2d(x).node().attributes();
                       attributes.set("channels_last", false);
                       x = x.graph().apply("max_pool2d", {x}, attributes);
                       attributes.set("channels_last", true);
                       return x.graph().apply("max_pool2d", {x}, attributes, "pool");
                     }),
            "[max_pool2d] pool: channels_last is of a graph that was planned: export the one that "
            "was built");
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(OnnxExport, RefusesWhatAnOpenDimensionWouldChange) {
  EXPECT_EQ(error_of({4},
                     [](Value x) {
                       return slice(x, {0, 0}, {1, 4});
                     }),
            "[slice] slice: takes a part of an open dimension");
  EXPECT_EQ(error_of({4}, [](Value x) { return scale(x, 1.0 / double(x.shape()[0])); }),
            "[scale] scale: depends on the size of batch");
  EXPECT_EQ(error_of({4},
                     [](Value x) {
                       return x + x.graph().variable("w", {x.shape()[0], 4});
                     }),
            "[variable] w: depends on the size of batch");
  EXPECT_EQ(error_of({4},
                     [](Value x) {
                       return x + x.graph().constant(Tensor(DType::kFloat32, {x.shape()[0], 4}));
                     }),
            "[constant] constant: depends on the size of batch");
  const char* const other_nodes =
      "ONNX: the model's graph has other nodes when batch has another size";
  EXPECT_EQ(error_of({4}, [](Value x) { return x.shape()[0] == 2 ? relu(x) : tanh(x); }),
            other_nodes);
  EXPECT_EQ(error_of({4},
                     [](Value x) {
                       const Value y = relu(x);
                       return sub(y, x.shape()[0] == 2 ? x : y);
                     }),
            other_nodes);
}

TEST_F(OnnxExport, RefusesWrongInputsAndNames) {
  EXPECT_EQ(error_of({4}, [](Value x) { return x + x.graph().input("z", {4}); }),
            "[input] z: an output needs it, and it is no input of the exported model");
  EXPECT_EQ(error_of({4}, [](Value x) { return relu(x + x.graph().variable("y", {4})); }),
            "[relu] relu: the ONNX model would have two values called y");
  const Build from_variable = [](std::int64_t, std::int64_t) {
    InferenceGraph made = empty_graph();
    const Value w = made.graph->variable("w", {4});
    made.inputs = {{"x", w}};
    made.outputs = {{"y", relu(w)}};
    return made;
  };
  EXPECT_THROW(exported(from_variable), Error);
}

TEST_F(OnnxExport, RefusesAFileThatNoReaderTakes) {
  EXPECT_THAT(error_of({4},
                       [](Value x) {
                         return embedding_lookup(x.graph().variable("w", {600'000'000, 1}),
                                                 cast(x, DType::kInt32));
                       }),
              HasSubstr("model.onnx: an ONNX file holds at most 2 GiB, and this model has 2.4 GB"));
}

class OnnxOfACheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    write_safetensors(checkpoint(), std::vector<NamedTensor>{{"words", words_}, {"bias", bias_}});
  }
  // y = words[ids] + bias.
  static OnnxModel model(const Shape& bias, const char* words = "words") {
    return {.build = [=](std::span<const std::int64_t> sizes) {
      InferenceGraph made = empty_graph();
      Graph& graph = *made.graph;
      const Value ids = graph.input("ids", {sizes[0]}, DType::kInt32);
      const Value rows = embedding_lookup(graph.variable(words, {2, 3}), ids);
      made.inputs = {{"ids", ids}};
      made.outputs = {{"y", rows + graph.variable("bias", bias)}};
      return made;
    }};
  }
  std::string error_of(const OnnxModel& model) const {
    try {
      write_onnx(path(), model, checkpoint());
    } catch (const Error& error) {
      EXPECT_FALSE(std::filesystem::exists(path()));
      return error.what();
    }
    return "no error";
  }
  std::string path() const { return folder_.path("model.onnx"); }
  std::string checkpoint() const { return folder_.path("saved.safetensors"); }
  const Tensor words_ = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor bias_ = Tensor::of<float>({3}, {7, 8, 9});
  TemporaryFolder folder_;
};

TEST_F(OnnxOfACheckpoint, HasItsValues) {
  EXPECT_EQ(write_onnx(path(), model({3}), checkpoint()).variables, 2);
  const ReadModel read = read_model(path());
  EXPECT_THAT(read.inputs, ElementsAre("ids: 6 (batch)"));
  for (const auto& [name, saved] : {std::pair{"words", words_}, {"bias", bias_}}) {
    const std::string_view values(static_cast<const char*>(saved.raw()), saved.bytes());
    EXPECT_EQ(read.bytes.at(name), values) << name;
  }
}

// As SharedVariables::save and PyTorch write them: a weight of nn.Linear is (units, inputs).
TEST_F(OnnxOfACheckpoint, MayBeAFileNamedAsPyTorchNamesModules) {
  const Tensor weight = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  write_safetensors(checkpoint(),
                    std::vector<NamedTensor>{{"layer.weight", weight},
                                             {"layer.bias", Tensor::of<float>({2}, {7, 8})}});
  Graph graph;
  const Value x = graph.input("x", {graph.open("rows"), 3});
  write_onnx(path(), graph, {{"x", x}}, {{"y", dense(x, 2, "layer")}}, checkpoint());
  const Tensor turned = Tensor::of<float>({3, 2}, {1, 4, 2, 5, 3, 6});
  EXPECT_EQ(read_model(path()).bytes.at("layer/w"),
            std::string_view(static_cast<const char*>(turned.raw()), turned.bytes()));
}

TEST_F(OnnxOfACheckpoint, IsNotWrittenWhereTheCheckpointDoesNotFit) {
  EXPECT_THAT(error_of(model({1})),
              AllOf(HasSubstr("saved.safetensors is a checkpoint of another model"),
                    HasSubstr("bias: (3) float32 in the checkpoint, (1) float32 in the model")));
  EXPECT_THAT(error_of(model({3}, "word")), HasSubstr("word: only in the model"));
}

TEST_F(OnnxOfACheckpoint, IsNotWrittenFromATornCheckpoint) {
  std::filesystem::resize_file(checkpoint(), std::filesystem::file_size(checkpoint()) - 1);
  EXPECT_THAT(error_of(model({3})), HasSubstr("saved.safetensors"));
}

}  // namespace
}  // namespace paceline
