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
  /// In a graph of blocks, float32 (1): 0 where the states begin anew, else 1.
  Value carry = {};
  /// Cross-entropy summed over time, mean over the batch.
  Value cost = {};
};

/// Builds the graph for batches of `batch` rows of `unroll` words. The states of the layers are
/// local variables that go on from step to step; in a graph of blocks only where `carry` is 1.
/// There is dropout only when `training` is true. Variables have the same names in all graphs of
/// one configuration.
PtbGraph build_ptb(Graph& graph, const PtbConfig& config, std::int64_t batch, std::int64_t unroll,
                   bool training, bool of_blocks = false);
/// Computes the probabilities of the word that follows each word, and the states of the layers,
/// which the user hands on to the next call: "words" int32 (T,N), "lstm1/h" (N,H), … →
/// "probabilities" (T,N,V), "lstm1/h_next", ….
InferenceGraph ptb_inference(const PtbConfig& config, std::int64_t unroll, std::int64_t batch);
/// The values of a graph for N lines of a text, T words of each at once.
struct PtbLines {
  Value inputs, targets;                // word ids, int32 (N,T)
  std::vector<Value> states = {};       // inputs (N,H): h and c of each layer
  std::vector<Value> next_states = {};  // the same after these words
  Value losses = {};                    // cross-entropy of each word, (N,T)
};

/// Builds the graph for inference, whose variables are those of build_ptb.
PtbLines build_ptb_lines(Graph& graph, const PtbConfig& config, std::int64_t lines,
                         std::int64_t words);
/// SGD on the cost, clipped by global norm, as the configuration says.
Training ptb_minimize(const PtbGraph& ptb, const PtbConfig& config);
/// Returns SessionOptions::modules: all layers stand in one nn.LSTM.
std::map<std::string, std::string> ptb_modules(const PtbConfig& config);

}  // namespace paceline::models
