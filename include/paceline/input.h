// Feed functions whose input is ready when a step needs it: from another thread, from arrays in
// memory, and from pipelines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "paceline/data.h"
#include "paceline/session.h"

namespace paceline {

/// Calls `feed` on a thread of its own, up to `batches` batches ahead of the step that uses them,
/// and copies each batch into the inputs of its step: session.run(prefetch(feed)). The thread
/// begins with the first call of the returned function. It ends when the last copy of that function
/// is destroyed; the destructor waits for a call of `feed` under way.
///
/// `feed` gets a Feed as it does without prefetch: step(), normal() and position() belong to the
/// batch that `feed` fills. A checkpoint has the position after the last batch that was used. After
/// `feed` has stopped, it is called again only when the run has ended there and another run asks
/// for a batch. The step that would have used a batch throws what `feed` has thrown for it. Only
/// inputs can be filled: view() of a local variable throws kInvalidArgument.
///
/// Throws kInvalidArgument when `batches` is below 1. A step throws kFailedPrecondition when its
/// batch has used step() or normal() for another step number, which happens when other feeds have
/// made steps in between.
std::function<void(Feed&)> prefetch(std::function<void(Feed&)> feed, int batches = 2);

/// How ArrayBatches goes through its examples.
struct ArrayBatchesOptions {
  /// True: each epoch has another order, which depends only on (seed, epoch).
  bool shuffle = true;
  std::uint64_t seed = 1;             // the seed of the orders; all workers of a job give the same
  LastBatch last = LastBatch::kDrop;  // the fate of an incomplete batch
  /// The number of examples in a batch, for inputs whose dimension 0 is open; 0: the usual size.
  std::int64_t batch = 0;
  /// A float32 input (batch) that gets 1 for each example and 0 for each row that only fills up the
  /// last batch, so that a loss can ignore these rows. Default: no such input.
  Value weights = {};
  int part = 0;   // the worker's index: each worker sees its own examples of each epoch
  int parts = 1;  // the number of workers (Cluster::workers)
  /// The prefix of the numbers that ArrayBatches keeps in Feed::position: "data.epoch",
  /// "data.batch" (how many batches of the epoch were used) and "data.rows" (how many examples a
  /// batch has).
  std::string name = "data";
};

/// A feed function over arrays in memory: dimension 0 of each array counts all examples, and
/// dimension 0 of its input counts the examples of a batch. Any dimension of an input may be open.
/// The feed stops at the end of an epoch, so that a run is an epoch:
///
///     ArrayBatches data({{x, images}, {y, labels}});
///     const auto feed = prefetch(data);
///     while (data.epoch(session.position()) < 10 && session.run(feed)) {}
///
/// The feed keeps its place in Feed::position: training that is resumed goes on with the batch that
/// follows the last one used, in the same order. With batches of another size it goes on after the
/// same number of examples, rounded down to whole batches. Copies share the arrays.
class ArrayBatches {
 public:
  /// `arrays` has an array for each input. Throws kInvalidArgument when there is no array, when an
  /// array and its input differ in type or in a dimension after the first, when two arrays differ
  /// in their number of examples or two inputs in their batch, when weights are not float32
  /// (batch), when there is no part `part` of `parts`, or when the part does not give one batch.
  explicit ArrayBatches(std::vector<std::pair<Value, Tensor>> arrays,
                        const ArrayBatchesOptions& options = {});
  /// Fills the inputs with the next batch, or stops at the end of an epoch.
  void operator()(Feed& feed);
  /// For evaluations, which have no position: fills the inputs with batch `batch` of epoch `epoch`,
  /// both from 0. Returns the number of examples in the batch. Throws kInvalidArgument when there
  /// is no such batch.
  std::int64_t fill(Feed& feed, std::int64_t batch, std::int64_t epoch = 0);
  /// The number of batches in an epoch.
  std::int64_t size() const { return batches_; }
  /// The number of examples of this part in an epoch.
  std::int64_t examples() const { return examples_; }
  /// The epoch, from 0, that the next batch belongs to.
  std::int64_t epoch(const TaskPosition& position) const;

 private:
  void check(const std::pair<Value, Tensor>& array) const;
  void check_options() const;
  std::int64_t all_examples() const;
  std::int64_t number(const TaskPosition& position, const char* key) const;
  std::int64_t next_batch(const TaskPosition& position) const;
  void begin_epoch(std::int64_t epoch);
  void copy_batch(Feed& feed, std::int64_t first, std::int64_t count) const;

  std::vector<std::pair<Value, Tensor>> arrays_;
  ArrayBatchesOptions options_;
  std::int64_t batch_ = 0, examples_ = 0, batches_ = 0;
  std::vector<std::int64_t> order_;    // the order of all examples in the epoch under way
  std::optional<std::int64_t> epoch_;  // the epoch of order_
};

/// A feed function over a pipeline, whose threads make batches ahead of the steps that use them:
///
///     PipelineFeed data(pipeline, images, labels);
///     session.run(data);
///
/// The feed keeps its place in Feed::position (PipelineReader::tell), so that training which is
/// resumed goes on with the very next record. The feed stops when the pipeline's epochs are over; a
/// run after that throws kFailedPrecondition. Copies share the pipeline's threads, and are for one
/// thread at a time.
class PipelineFeed {
 public:
  /// The inputs of a batch are `values` (float32), `labels` (int32) and, unless it is left out,
  /// `weights` (float32 (batch)): 1 for each record, and 0 for a row that fills up the last batch
  /// or stands in for a bad record. The names of the numbers in Feed::position begin with `name`.
  /// Throws kInvalidArgument when an input has another type or shape than the batches.
  PipelineFeed(const Pipeline& pipeline, Value values, Value labels, Value weights = {},
               const std::string& name = "data");
  /// Fills the inputs with the batch that follows the position, or stops.
  void operator()(Feed& feed);
  /// For evaluations, which have no position: fills the inputs with the next batch of a pass over
  /// the data. A pass has batches() batches, and the call after its last one begins anew. Returns
  /// the number of records with weight 1.
  std::int64_t fill(Feed& feed);
  /// The number of batches in one pass.
  std::int64_t batches() const;
  /// Returns what the pipeline has done so far, for SessionOptions::input. Any thread may call the
  /// function.
  InputReport report() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

/// Evaluates scalars of one graph over all examples of `data`, an ArrayBatches or a PipelineFeed,
/// by a Session or an Evaluator:
///
///     const std::vector<double> means = means_over(session, {loss, accuracy}, test);
///
/// Each value is a mean over a batch, and counts by the examples of the batch. Returns the means
/// over all examples; zeros if the session was not started.
template <typename Evaluates, typename Batches>
std::vector<double> means_over(Evaluates& evaluates, const std::vector<Value>& values,
                               Batches& data) {
  std::vector<double> sums(values.size());
  double all = 0;
  const auto add_batch = [&](const std::function<std::int64_t(Feed&)>& fill) {
    double examples = 0;
    const std::vector<Tensor> means = evaluates.evaluate(
        values.at(0).graph(), values, [&](Feed& feed) { examples = double(fill(feed)); });
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const bool wide = means[i].dtype() == DType::kFloat64;
      sums[i] += examples * (wide ? means[i].item<double>() : double(means[i].item<float>()));
    }
    all += examples;
  };
  if constexpr (std::is_same_v<Batches, ArrayBatches>) {
    for (std::int64_t batch = 0; batch < data.size(); ++batch) {
      add_batch([&](Feed& feed) { return data.fill(feed, batch); });
    }
  } else {
    for (std::int64_t batch = 0; batch < data.batches(); ++batch) {
      add_batch([&](Feed& feed) { return data.fill(feed); });
    }
  }
  for (double& sum : sums) sum = all > 0 ? sum / all : 0;
  return sums;
}

}  // namespace paceline
