// A trained model in use: values of a graph, computed with the variables of a checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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
  std::string path;               // the checkpoint's folder or file, for a Predictor
  std::int64_t global_step = -1;  // −1 of a lone safetensors file, which tells nothing else
  std::string model = {};         // SessionOptions::model; empty: not known
  /// RunOptions::settings: those of the program that the user gave.
  std::map<std::string, std::string> settings = {};
  /// SessionOptions::data_names: the classes by label, the words by id, …
  std::map<std::string, std::vector<std::string>> data_names = {};
  /// A line for the user about each newer checkpoint of the run that is not whole.
  std::vector<std::string> passed_over = {};
};
/// Reads what the checkpoint tells, of which Predictor's constructor says how it is named. Throws
/// kNotFound when there is none, and kDataLoss when the one that was named is not whole.
SavedModel saved_model(const std::string& checkpoint);

/// The options of a predictor.
struct PredictorOptions {
  /// Which values of the variables it computes with: the variables, or the moving averages of those
  /// that have one in the checkpoint.
  EvaluateWith with = EvaluateWith::kVariables;
  /// The threads with which one call computes; 0: as many as the process may use cores. If several
  /// threads call at once, each has so many: a program with a thread for each core takes 1.
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
/// Dimension 0 of every output, and of every input that they depend on, is the batch. The graph is
/// made for batches of one size. An input of more rows is computed in several batches; the last one
/// is filled up with zeros, whose rows are left out of the result. So a row of an output may depend
/// on the same row of the inputs alone, as it does in a graph for inference, and a graph of a large
/// batch is slow for few rows. Local variables are zero in every batch.
class Predictor {
 public:
  /// Reads the values. `checkpoint` is what RunOptions::init_from takes: the --out folder of a run,
  /// of which it takes the newest checkpoint that is whole by its checksums, RUN:best, the folder
  /// of a checkpoint, or a safetensors file. The graph must outlive the predictor, and stay as it
  /// is. Throws kInvalidArgument when there is no output, when one is of another graph or has
  /// another batch, or when the graph updates moving statistics, as one for training does;
  /// kNotFound when there is no checkpoint; kFailedPrecondition with a line for each variable of
  /// the graph that the checkpoint does not have, or has in another shape or type.
  Predictor(const Graph& graph, std::vector<Value> outputs, const std::string& checkpoint,
            const PredictorOptions& options = {});
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  /// Computes the outputs, in their order. Each tensor is of an input (n, …), with the same number
  /// n of rows for all, at least 1; the outputs are (n, …). Any number of threads may call it at
  /// once; each of them computes in memory of its own, which later calls use again. Throws
  /// kInvalidArgument, naming the input, when a tensor does not fit it; kFailedPrecondition, naming
  /// the input, when one is missing.
  std::vector<Tensor> predict(const std::vector<std::pair<Value, Tensor>>& inputs) const;

  /// The rows of the batches for which the graph is made.
  std::int64_t batch() const;
  /// The global step of the checkpoint; −1 of a lone safetensors file, which has none.
  std::int64_t global_step() const;
  /// The checkpoint's folder or file.
  const std::string& checkpoint() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
