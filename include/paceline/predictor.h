// A trained model in use: a Predictor computes values of a graph with the variables of a
// checkpoint, and write_onnx writes them for other programs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/graph.h"
#include "paceline/session.h"
#include "paceline/tensor.h"

namespace paceline {

/// A checkpoint's facts about the model that was trained.
struct SavedModel {
  std::string path;  // the checkpoint's folder or file, for a Predictor
  /// −1 for a lone safetensors file, which has none of the next facts.
  std::int64_t global_step = -1;
  std::string model = {};  // SessionOptions::model; empty: not known
  /// RunOptions::settings: the settings of the program that the user gave.
  std::map<std::string, std::string> settings = {};
  /// SessionOptions::data_names: the classes by label, the words by id, …
  std::map<std::string, std::vector<std::string>> data_names = {};
  /// A line for the user about each newer checkpoint of the run that is not whole.
  std::vector<std::string> passed_over = {};
};
/// Reads the facts of a checkpoint; Predictor's constructor says how to name one. Throws kNotFound
/// when there is none, and kDataLoss when the one that was named is not whole.
SavedModel saved_model(const std::string& checkpoint);

/// The options of a predictor.
struct PredictorOptions {
  /// The values that a Predictor computes with: the variables, or the moving averages of those that
  /// have one in the checkpoint.
  EvaluateWith with = EvaluateWith::kVariables;
  /// The threads with which one call computes; 0: as many as the process may use cores. If several
  /// threads call at once, each call computes with this number: a program with a thread for each
  /// core takes 1.
  int threads = 0;
  /// The device that computes.
  DeviceChoice device = {};
  /// SessionOptions::modules, for a file of PyTorch modules whose names differ from the graph's.
  std::map<std::string, std::string> modules = {};
};

/// Computes outputs of a graph with the values of a checkpoint, without a session and a cluster.
///
///     Graph graph;
///     const Value x = graph.input("x", {32, 64}), y = softmax(dense(x, 10, "layer"));
///     const Predictor predictor(graph, {y}, "run:best");
///     const Tensor probabilities = predictor.predict({{x, points}})[0];  // of any number of
///     points
///
/// A graph with open dimensions (Graph::open) is computed for the sizes that the inputs have; the
/// predictor makes a plan for each new set of sizes, and keeps some sixteen plans. Every open
/// dimension must stand alone on an axis of some input, in no product.
///
/// If a graph has no open dimensions, dimension 0 of every output, and of every input that they
/// depend on, is the batch. The graph is made for batches of one size. An input of more rows is
/// computed in several batches; the last one is filled up with zeros, whose rows are left out of
/// the result. So a row of an output may depend on the same row of the inputs alone, as it does in
/// a graph for inference, and a graph of a large batch is slow for few rows. Local variables are
/// zero in every batch. A graph that trains serves as well: dropout and batch_norm are those of
/// inference (Mode::kInfer).
class Predictor {
 public:
  /// Reads the values. `checkpoint` is what RunOptions::init_from takes: the --out folder of a run
  /// (which means its newest checkpoint that is whole by its checksums), RUN:best, the folder of a
  /// checkpoint, or a safetensors file. The graph must outlive the predictor, and stay as it is.
  /// Throws kInvalidArgument when there is no output, or when one is of another graph or has
  /// another batch; kNotFound when there is no checkpoint; kFailedPrecondition with a line for each
  /// variable of the graph that the checkpoint does not have, or has in another shape or type.
  Predictor(const Graph& graph, std::vector<Value> outputs, const std::string& checkpoint,
            const PredictorOptions& options = {});
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  /// Computes the outputs, in their order. Each tensor belongs to an input. Open dimensions have
  /// sizes of at least 1, on which the tensors agree. In a graph without open dimensions each
  /// tensor is (n, …), with the same number of rows n, at least 1, for all, and so are the outputs.
  /// Any number of threads may call it at once; each of them computes in memory of its own, which
  /// later calls use again. Throws kInvalidArgument, naming the input, when a tensor does not fit
  /// it; kFailedPrecondition, naming the input, when one is missing.
  std::vector<Tensor> predict(const std::vector<std::pair<Value, Tensor>>& inputs) const;

  /// The rows of the batches for which the graph is made; 0 for a graph with open dimensions.
  std::int64_t batch() const;
  /// The global step of the checkpoint; −1 for a lone safetensors file, which has none.
  std::int64_t global_step() const;
  /// The checkpoint's folder or file.
  const std::string& checkpoint() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A value under the name that the users of a model know: "images".
struct NamedValue {
  std::string name;  // unique among the model's inputs and outputs
  Value value;       // a value of the model's graph
};

/// A graph that computes what a trained model is for.
struct InferenceGraph {
  std::unique_ptr<Graph> graph;         // owns the values
  std::vector<NamedValue> inputs = {};  // inputs and local variables of the graph
  /// The values that are computed from the inputs and the shared variables.
  std::vector<NamedValue> outputs = {};
};

/// A model whose users choose some of its dimensions, such as the size of a batch.
struct OnnxModel {
  std::vector<std::string> open = {"batch"};  // the names of these dimensions
  /// Builds the graph with these sizes of the dimensions that users choose, in their order. Only
  /// shapes may depend on the sizes: write_onnx builds graphs of several sizes to learn which
  /// shapes do. It may be the graph that trains: dropout and batch_norm become those of inference
  /// (Mode::kInfer).
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
/// Writes the part of a graph that leads from `inputs` to `outputs`. Open dimensions (Graph::open)
/// stay open in the file.
OnnxFile write_onnx(const std::string& file, const Graph& graph,
                    const std::vector<NamedValue>& inputs, const std::vector<NamedValue>& outputs,
                    const std::string& checkpoint, EvaluateWith with = EvaluateWith::kVariables);

}  // namespace paceline
