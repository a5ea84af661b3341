// The ptb language model as a graph: embedding, LSTM layers, softmax.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/ptb_config.h"
#include "paceline/graph.h"
#include "paceline/minimize.h"
#include "paceline/predictor.h"

namespace paceline::models {

/// The values of the graph, for T time steps and N rows.
struct PtbGraph {
  Value inputs, targets;  // word ids, int32 (T,N)
  /// In a graph of blocks: float32 (1), 0 in a step in which the states begin anew, else 1.
  Value carry = {};
  /// The cross-entropy, summed over time steps, as a mean over the rows of the batch.
  Value cost = {};
};

/// Builds the graph for batches of `batch` rows of `unroll` words. The states of the layers are
/// local variables that go on from step to step, in a graph of blocks only in steps with a `carry`
/// of 1. The graph has dropout only if `training` is true. Variables have the same names in all
/// graphs of one configuration.
PtbGraph build_ptb(Graph& graph, const PtbConfig& config, std::int64_t batch, std::int64_t unroll,
                   bool training, bool of_blocks = false);
/// Builds the graph that computes, after each word, the probabilities of the next word. The caller
/// feeds the states of the layers, and gets the next states to feed in the next call: "words" int32
/// (T,N), "lstm1/h" (N,H), … → "probabilities" (T,N,V), "lstm1/h_next", ….
InferenceGraph ptb_inference(const PtbConfig& config, std::int64_t unroll, std::int64_t batch);
/// The values of a graph that computes T words of each of N lines of a text in one step.
struct PtbLines {
  Value inputs, targets;                // word ids, int32 (N,T)
  std::vector<Value> states = {};       // inputs (N,H): h and c of each layer
  std::vector<Value> next_states = {};  // the states after these words
  Value losses = {};                    // cross-entropy of each word, (N,T)
};

/// Builds the graph by which Model::infer computes the losses of lines. Its variables are those of
/// build_ptb.
PtbLines build_ptb_lines(Graph& graph, const PtbConfig& config, std::int64_t lines,
                         std::int64_t words);
/// Minimizes the cost by SGD. The configuration gives the learning rate and the global norm to
/// which gradients are clipped.
Training ptb_minimize(const PtbGraph& ptb, const PtbConfig& config);
/// Returns SessionOptions::modules: all LSTM layers are in one nn.LSTM.
std::map<std::string, std::string> ptb_modules(const PtbConfig& config);

}  // namespace paceline::models
