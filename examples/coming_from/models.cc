// Parts of models: dropout, words, an op of one's own, mixed precision.
#include "pieces.h"
using namespace paceline;

void drop_out(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Value x = graph.input("x", {32, 4}), y = graph.input("y", {32, 4});
  const Value hidden = dropout(relu(dense(x, 16, "hidden")), 0.5);
  const Model model = {x, y, mean_squared_error(dense(hidden, 4, "out"), y)};
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.run(noise(model));
  session.evaluate(model.loss, noise(model));  // without dropout
}

void read_words(const Cluster& cluster, RunOptions run) {
  constexpr std::int64_t kSteps = 5, kBatch = 8, kUnits = 16, kWords = 100;
  Graph graph;
  const Value words = graph.input("words", {kSteps, kBatch}, DType::kInt32);
  const Value next = graph.input("next", {kSteps, kBatch}, DType::kInt32);
  const Initializer small = Initializer::uniform(-0.1f, 0.1f);
  const Value table = graph.variable("table", {kWords, kUnits}, small);
  const Value h = graph.local("h", {kBatch, kUnits}), c = graph.local("c", {kBatch, kUnits});
  const LstmOutput layer = lstm(embedding_lookup(table, words), h, c,
                                graph.variable("lstm/w", {2 * kUnits, 4 * kUnits}, small),
                                graph.variable("lstm/b", {4 * kUnits}));
  graph.assign(h, layer.h);  // the state is carried from step to step
  graph.assign(c, layer.c);
  const Value rows = reshape(layer.outputs, {kSteps * kBatch, kUnits});
  const Value labels = reshape(next, {kSteps * kBatch});
  const Value loss = reduce_mean(softmax_cross_entropy(dense(rows, kWords, "words"), labels));
  Session session(minimize(loss, Adam{}), cluster, run);
  session.run([&](Feed& feed) {
    const auto from = feed.data<std::int32_t>(words), to = feed.data<std::int32_t>(next);
    for (std::size_t i = 0; i < from.size(); ++i) {
      from[i] = std::int32_t((std::size_t(feed.step()) + i) % kWords);
      to[i] = std::int32_t((std::size_t(feed.step()) + i + 1) % kWords);
    }
  });
}

Op cube_op() {
  Op op;
  op.name = "cube";
  op.infer = [](const OpInputs& in) {
    in.expect_count(1);
    return std::vector<ValueType>{in.types[0]};
  };
  op.gradient = [](const Node& node, std::span<const Value> dy) {
    return std::vector<Gradient>{dy[0] * 3 * square(node.input(0))};
  };
  op.kernel = [](const Node&, const KernelCall& call) {
    const float* x = call.inputs[0].as<float>();
    float* y = call.outputs[0].as<float>();
    const std::int64_t elements = call.outputs[0].shape.elements();
    for (std::int64_t i = 0; i < elements; ++i) y[i] = x[i] * x[i] * x[i];
  };
  return op;
}

void use_an_op_of_ones_own(const Cluster& cluster, RunOptions run) {
  OpRegistry ops = copy_of_builtin_ops();
  register_op(ops, cube_op());
  Graph graph(ops);
  const Value x = graph.input("x", {32, 4}), y = graph.input("y", {32, 4});
  const Value cubes = graph.apply("cube", {dense(x, 4, "layer")});
  const Model model{x, y, mean_squared_error(cubes, y)};
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.run(noise(model));
}

void compute_in_bfloat16(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Cluster mixed = cluster;
  mixed.train.precision = DType::kBFloat16;  // --precision bfloat16: products, summed in float32
  Session session(minimize(model.loss, Adam{}), mixed, run);
  session.run(noise(model));
}
