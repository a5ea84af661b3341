#include "models/ptb_graph.h"

#include <fmt/format.h>

#include "paceline/ops.h"

namespace paceline::models {
namespace {

Initializer uniform_of(const PtbConfig& config) {
  return Initializer::uniform(-float(config.init_scale), float(config.init_scale));
}

Value drop(Value x, const PtbConfig& config, bool training) {
  return training && config.keep_prob < 1 ? dropout(x, config.keep_prob) : x;
}

Value word_table(Graph& graph, const PtbConfig& config) {
  return graph.variable("embedding", {config.vocabulary, config.hidden}, uniform_of(config));
}

// An LSTM layer: x (T,N,H) from states h and c (N,H).
LstmOutput lstm_from(Value x, Value h, Value c, const PtbConfig& config) {
  Graph& graph = x.graph();
  const std::int64_t hidden = config.hidden;
  const Value weights = graph.variable("w", {2 * hidden, 4 * hidden}, uniform_of(config));
  const Value biases = graph.variable("b", {4 * hidden});
  return lstm(x, h, c, weights, biases);
}

// An LSTM layer with local states: x (T,N,H) → (T,N,H). Without `carry`, the states always go on
// from step to step.
Value lstm_layer(Value x, Value carry, const PtbConfig& config) {
  Graph& graph = x.graph();
  const Shape state{x.shape()[1], config.hidden};
  const Value h = graph.local("h", state), c = graph.local("c", state);
  const auto begin = [&](Value state) { return carry ? state * carry : state; };
  const LstmOutput out = lstm_from(x, begin(h), begin(c), config);
  graph.assign(h, out.h);
  graph.assign(c, out.c);
  return out.outputs;
}

// x (T·N,H) → (T·N,V).
Value softmax_logits(Value x, const PtbConfig& config) {
  Graph& graph = x.graph();
  const auto scope = graph.scope("softmax");
  const Value weights = graph.variable("w", {config.hidden, config.vocabulary}, uniform_of(config));
  const Value biases = graph.variable("b", {config.vocabulary}, uniform_of(config));
  return bias(matmul(x, weights), biases);
}

}  // namespace

PtbGraph build_ptb(Graph& graph, const PtbConfig& config, std::int64_t batch, std::int64_t unroll,
                   bool training, bool of_blocks) {
  PtbGraph ptb{.inputs = graph.input("inputs", {unroll, batch}, DType::kInt32),
               .targets = graph.input("targets", {unroll, batch}, DType::kInt32)};
  if (of_blocks) ptb.carry = graph.input("carry", {1});
  Value x = drop(embedding_lookup(word_table(graph, config), ptb.inputs), config, training);
  for (std::int64_t layer = 1; layer <= config.layers; ++layer) {
    const auto scope = graph.scope(fmt::format("lstm{}", layer));
    x = drop(lstm_layer(x, ptb.carry, config), config, training);
  }
  const Value logits =
      graph.named("logits", softmax_logits(reshape(x, {unroll * batch, config.hidden}), config));
  const Value losses = softmax_cross_entropy(logits, reshape(ptb.targets, {unroll * batch}));
  ptb.cost = graph.named("cost", scale(reduce_sum(losses), 1.0 / double(batch)));
  return ptb;
}

InferenceGraph ptb_inference(const PtbConfig& config, std::int64_t unroll, std::int64_t batch) {
  InferenceGraph made{.graph = std::make_unique<Graph>()};
  Graph& graph = *made.graph;
  const PtbGraph ptb = build_ptb(graph, config, batch, unroll, false);
  made.inputs = {{"words", ptb.inputs}};
  const Value all = softmax(graph.find("logits"));
  made.outputs = {{"probabilities", reshape(all, {unroll, batch, config.vocabulary})}};
  for (const Graph::Assignment& state : graph.assignments()) {
    made.inputs.push_back({state.local.name(), state.local});
    made.outputs.push_back({state.local.name() + "_next", state.value});
  }
  return made;
}

PtbLines build_ptb_lines(Graph& graph, const PtbConfig& config, std::int64_t lines,
                         std::int64_t words) {
  PtbLines ptb{.inputs = graph.input("inputs", {lines, words}, DType::kInt32),
               .targets = graph.input("targets", {lines, words}, DType::kInt32)};
  Value x = transpose(embedding_lookup(word_table(graph, config), ptb.inputs), {1, 0, 2});
  for (std::int64_t layer = 1; layer <= config.layers; ++layer) {
    const auto scope = graph.scope(fmt::format("lstm{}", layer));
    for (const char* name : {"h", "c"}) {
      ptb.states.push_back(graph.input(name, {lines, config.hidden}));
    }
    const LstmOutput out = lstm_from(x, ptb.states.end()[-2], ptb.states.back(), config);
    ptb.next_states.insert(ptb.next_states.end(), {out.h, out.c});
    x = out.outputs;
  }
  const Value rows = reshape(transpose(x, {1, 0, 2}), {lines * words, config.hidden});
  const Value losses =
      softmax_cross_entropy(softmax_logits(rows, config), reshape(ptb.targets, {lines * words}));
  ptb.losses = reshape(losses, {lines, words});
  return ptb;
}

Training ptb_minimize(const PtbGraph& ptb, const PtbConfig& config) {
  MinimizeOptions options;
  options.clip_norm = float(config.max_grad_norm);
  return minimize(ptb.cost, Sgd{.learning_rate = float(config.learning_rate)}, options);
}

std::map<std::string, std::string> ptb_modules(const PtbConfig& config) {
  std::map<std::string, std::string> modules = {{"embedding", "embedding"}};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    modules[fmt::format("lstm{}", layer + 1)] = fmt::format("lstm.*_l{}", layer);
  }
  return modules;
}

}  // namespace paceline::models
