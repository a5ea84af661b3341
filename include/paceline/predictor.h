// Using a trained model: a Predictor computes values of a graph with the variables of a checkpoint,
// and write_onnx writes graph and variables to a file for other programs.
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

/// The facts that a checkpoint keeps of the model that was trained.
struct SavedModel {
  std::string path;  // the checkpoint's folder or file, for a Predictor
  /// The global step of the checkpoint. −1 for a lone safetensors file, which tells none of the
  /// facts below.
  std::int64_t global_step = -1;
  std::string model = {};  // SessionOptions::model; empty: not known
  /// RunOptions::settings: the settings of the program that the user gave.
  std::map<std::string, std::string> settings = {};
  /// SessionOptions::data_names: the classes by label, the words by id, …
  std::map<std::string, std::vector<std::string>> data_names = {};
  /// Returns data_names of this key, such as "classes". Throws kNotFound, naming the checkpoint,
  /// when it has none.
  const std::vector<std::string>& names(const std::string& key) const;
  /// A line for the user about each newer checkpoint of the run that is not whole.
  std::vector<std::string> passed_over = {};
};
/// Reads the facts of a checkpoint, which is named as for the constructor of Predictor. Throws
/// kNotFound when there is no such checkpoint, and kDataLoss when the named checkpoint is not
/// whole.
SavedModel saved_model(const std::string& checkpoint);

/// The options of a predictor.
struct PredictorOptions {
  /// The values that a Predictor computes with: the variables, or the moving averages of those that
  /// have one in the checkpoint.
  EvaluateWith with = EvaluateWith::kVariables;
  /// The number of threads with which one call computes; 0: one for each core that the process may
  /// use. Calls at the same time do not share these threads, so a program that calls on one thread
  /// for each core should take 1.
  int threads = 0;
  /// The device that computes.
  DeviceChoice device = {};
  /// The names of PyTorch modules (SessionOptions::modules), for a file whose names differ from the
  /// graph's.
  std::map<std::string, std::string> modules = {};
};

/// Computes outputs of a graph with the values of a checkpoint, without a session and a cluster.
///
///     Graph graph;
///     const Value x = graph.input("x", {32, 64}), y = softmax(dense(x, 10, "layer"));
///     const Predictor predictor(graph, {y}, "run:best");
///     const Tensor probabilities = predictor.predict({{x, points}})[0];  // any number of rows
///
/// A graph with open dimensions (Graph::open) is computed for the sizes that the inputs have. The
/// predictor makes a plan for each new set of sizes, and keeps some sixteen plans. Every open
/// dimension must be a dimension of some input by itself, not only a factor of one.
///
/// If a graph has no open dimensions, dimension 0 of every output, and of every input that the
/// outputs depend on, must be the batch. The graph then computes batches of one size. Inputs of
/// more rows are computed in several batches. The last batch is filled up with zeros, and the rows
/// of these zeros are left out of the result. So a row of an output may depend only on the same row
/// of the inputs, and a graph of a large batch is slow for few rows. Local variables are zero in
/// every batch. The graph may be the one that was trained: dropout and batch_norm compute as for
/// inference (Mode::kInfer).
class Predictor {
 public:
  /// Reads the values. `checkpoint` is the --out folder of a run (which means its newest checkpoint
  /// that is whole by its checksums), RUN:best, the folder of a checkpoint, or a safetensors file,
  /// as in RunOptions::init_from. The graph must outlive the predictor, and must not change. Throws
  /// kInvalidArgument when there is no output, or when an output belongs to another graph or has
  /// another batch. Throws kNotFound when there is no such checkpoint. Throws kFailedPrecondition
  /// with a line for each variable of the graph that the checkpoint lacks, or has in another shape
  /// or type.
  Predictor(const Graph& graph, std::vector<Value> outputs, const std::string& checkpoint,
            const PredictorOptions& options = {});
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  /// Computes the outputs, in their order, from a tensor for each input. Open dimensions have sizes
  /// of at least 1, on which all tensors must agree. In a graph without open dimensions, each
  /// tensor has the shape (n, …), with the same number of rows n ≥ 1 for all, and the outputs have
  /// n rows, too. Any number of threads may call the function at once. Each call computes in its
  /// own memory, which later calls use again. Throws kInvalidArgument, naming the input, when a
  /// tensor does not fit it; kFailedPrecondition, naming the input, when one is missing.
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

/// A value and the name that users of the model give to it, such as "images".
struct NamedValue {
  std::string name;  // unique among the model's inputs and outputs
  Value value;       // a value of the model's graph
};

/// A graph that computes the results of a trained model.
struct InferenceGraph {
  std::unique_ptr<Graph> graph;         // owns the values
  std::vector<NamedValue> inputs = {};  // inputs and local variables of the graph
  /// The results, which the graph computes from the inputs and the shared variables.
  std::vector<NamedValue> outputs = {};
};

/// A model whose users choose some of its dimensions, such as the size of a batch.
struct OnnxModel {
  std::vector<std::string> open = {"batch"};  // the names of these dimensions
  /// Builds the graph with these sizes of the dimensions that users choose, in their order. Only
  /// shapes may depend on the sizes: write_onnx builds graphs of several sizes to learn which
  /// shapes do. The graph may be the one that was trained: dropout and batch_norm become those of
  /// inference (Mode::kInfer).
  std::function<InferenceGraph(std::span<const std::int64_t> sizes)> build;
  std::map<std::string, std::string> metadata = {};  // texts that the file holds, by key
};

/// The contents of the file that write_onnx has written.
struct OnnxFile {
  std::vector<std::string> inputs;   // "images float32 (batch,3,32,32)"
  std::vector<std::string> outputs;  // "probabilities float32 (batch,10)"
  std::int64_t variables = 0;        // the number of variables that the graph reads
  std::uint64_t bytes = 0;           // the size of the file
};

/// Writes `file` in opset 18 with the values that `checkpoint` holds, or with the moving averages
/// of variables that have one. `checkpoint` is the --out folder of a run, RUN:best, or a
/// checkpoint, as in RunOptions::init_from. Variables keep their names. If the file cannot be
/// written whole, no file is written. Throws kInvalidArgument, naming an op that ONNX cannot
/// express or a variable that has another shape in the checkpoint. Throws kNotFound when the
/// checkpoint or a variable is missing, and kDataLoss when the checkpoint is torn.
OnnxFile write_onnx(const std::string& file, const OnnxModel& model, const std::string& checkpoint,
                    EvaluateWith with = EvaluateWith::kVariables);
/// Writes the part of a graph that computes `outputs` from `inputs`. Open dimensions (Graph::open)
/// stay open in the file.
OnnxFile write_onnx(const std::string& file, const Graph& graph,
                    const std::vector<NamedValue>& inputs, const std::vector<NamedValue>& outputs,
                    const std::string& checkpoint, EvaluateWith with = EvaluateWith::kVariables);

}  // namespace paceline
