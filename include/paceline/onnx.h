// Trained models as files of ONNX (https://onnx.ai), which other programs run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "paceline/graph.h"
#include "paceline/session.h"

namespace paceline {

/// A value under the name that the users of a model know: "images".
struct NamedValue {
  std::string name;  // unique among the model's inputs and outputs
  Value value;       // a value of the model's graph
};

/// A graph that computes what a trained model is for.
struct InferenceGraph {
  std::unique_ptr<Graph> graph;          // owns the values
  std::vector<NamedValue> inputs = {};   // inputs and local variables of the graph
  std::vector<NamedValue> outputs = {};  // what is computed from them and from the shared variables
};

/// A model whose users choose some of its dimensions, such as the size of a batch.
struct OnnxModel {
  std::vector<std::string> open = {"batch"};  // the names of these dimensions
  /// Builds the graph with a size for each of them, in their order; only shapes may depend on the
  /// sizes. Which shapes do is known from graphs of several sizes.
  std::function<InferenceGraph(std::span<const std::int64_t> sizes)> build;
  std::map<std::string, std::string> metadata = {};  // texts that the file keeps, by their keys
};

/// A file that was written.
struct OnnxFile {
  std::vector<std::string> inputs;   // "images float32 (batch,3,32,32)"
  std::vector<std::string> outputs;  // "probabilities float32 (batch,10)"
  std::int64_t variables = 0;        // how many the graph reads
  std::uint64_t bytes = 0;           // the size of the file
};

/// Writes `file` in opset 18 with the values that `checkpoint` holds, or with the moving averages
/// of variables that have one. `checkpoint` is what RunOptions::init_from takes: the --out folder
/// of a run, RUN:best, or a checkpoint. Variables keep their names. A file that cannot be written
/// whole is not written. Throws kInvalidArgument naming the op that ONNX cannot express, or the
/// variable whose shape is another one in the checkpoint; kNotFound when the checkpoint or a
/// variable is not there, and kDataLoss when the checkpoint is torn.
OnnxFile write_onnx(const std::string& file, const OnnxModel& model, const std::string& checkpoint,
                    EvaluateWith with = EvaluateWith::kVariables);

}  // namespace paceline
