#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "base/copy_bytes.h"
#include "base/row_count.h"
#include "data/pipeline_plan.h"
#include "graph/open_graph.h"
#include "paceline/error.h"
#include "paceline/input.h"
#include "train/feed.h"

namespace paceline {
namespace {

void check_batch(Value input, const ValueType& batch, bool is_short) {
  if (input && input.dtype() == batch.dtype && fits(input.shape(), batch.shape)) {
    if (!is_short || is_open(input.shape()[0])) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[pipeline] the last batch is a short one, and its input '{}' is {}: "
                            "dimension 0 must be open (Graph::open)",
                            input.name(), input.type().str()));
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[pipeline] the batches have {}, and their input {}", batch.str(),
                          input ? fmt::format("'{}' is {}", input.name(), input.type().str())
                                : "is missing"));
}

void copy_to(Feed& feed, Value input, const Tensor& batch, std::int64_t rows) {
  const TensorView memory = feed.view(input, with_rows(batch.shape(), rows));
  copy_bytes(memory.data, batch.raw(), memory.bytes());
}

// True when `position`, which may have other numbers too, has the numbers of `place`.
bool is_at(const TaskPosition& position, const TaskPosition& place) {
  return std::ranges::all_of(place.numbers, [&](const auto& number) {
    const auto found = position.numbers.find(number.first);
    return found != position.numbers.end() && found->second == number.second;
  });
}

}  // namespace

class PipelineFeed::State {
 public:
  State(const Pipeline& pipeline, Value values, Value labels, Value weights, std::string name)
      : pipeline_(pipeline),
        values_(values),
        labels_(labels),
        weights_(weights),
        name_(std::move(name)) {
    const Shape shape = pipeline.shape();
    if (pipeline.plan()->epochs == 1 && pipeline.batches() == 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[pipeline] its {} records give no batch of {}", pipeline.examples(),
                              shape[0]));
    }
    const bool is_short = pipeline.plan()->last == LastBatch::kShort;
    check_batch(values, {DType::kFloat32, shape}, is_short);
    check_batch(labels, {DType::kInt32, {shape[0]}}, is_short);
    if (weights) check_batch(weights, {DType::kFloat32, {shape[0]}}, is_short);
  }

  void feed(Feed& feed) {
    check_trains(feed);
    TaskPosition& position = feed.position();
    const auto blocks = pipeline_.is_shared_out() ? feed.record_blocks() : nullptr;
    if (blocks) {
      if (!reader_ || pass_ || reader_->revoked()) begin(blocks);
    } else if (!reader_ || pass_ || !is_at(position, place_)) {
      begin(position);
    }
    pass_.reset();
    const InputBatch* const batch = reader_->next();
    if (batch == nullptr) return stop(feed);
    is_over_ = false;
    give(*batch, feed);
    reader_->tell(place_);
    for (const auto& [name, number] : place_.numbers) position.numbers[name] = number;
  }

  std::int64_t fill(Feed& feed) {
    if (!pass_ || *pass_ == pipeline_.batches()) {
      begin(TaskPosition());
      pass_ = 0;
    }
    const InputBatch* const batch = reader_->next();
    ++*pass_;
    give(*batch, feed);
    return batch->records;
  }

  std::int64_t batches() const { return pipeline_.batches(); }

  InputReport report() const {
    const std::lock_guard lock(mutex_);
    return reader_ ? reader_->report() : InputReport();
  }

 private:
  // Stops a run. A second stop in a row is an error: a program that calls run() until it returns
  // false would otherwise never end.
  void stop(Feed& feed) {
    if (std::exchange(is_over_, true)) {
      throw Error(ErrorCode::kFailedPrecondition,
                  "[pipeline] its epochs are over, and another run asks for a batch: let it "
                  "repeat(), or end the loop");
    }
    feed.stop();
  }

  // Ends the threads of the previous reader before it makes the new one, which reads from a
  // position, or the records that a job shares out.
  template <typename From>
  void begin(const From& from) {
    const std::lock_guard lock(mutex_);
    reader_.reset();
    reader_.emplace(pipeline_, from, name_);
    place_ = TaskPosition();
  }

  void give(const InputBatch& batch, Feed& feed) const {
    copy_to(feed, values_, batch.values, batch.rows);
    copy_to(feed, labels_, batch.labels, batch.rows);
    if (weights_) copy_to(feed, weights_, batch.weights, batch.rows);
  }

  const Pipeline pipeline_;
  const Value values_, labels_, weights_;
  const std::string name_;
  mutable std::mutex mutex_;  // guards reader_ against a thread that asks for a report
  std::optional<PipelineReader> reader_;
  TaskPosition place_;    // the position after the last batch
  bool is_over_ = false;  // true: the last call has found no batch
  // The number of batches so far in the pass of an evaluation; none while training.
  std::optional<std::int64_t> pass_;
};

PipelineFeed::PipelineFeed(const Pipeline& pipeline, Value values, Value labels, Value weights,
                           const std::string& name)
    : state_(std::make_shared<State>(pipeline, values, labels, weights, name)) {}
void PipelineFeed::operator()(Feed& feed) { state_->feed(feed); }
std::int64_t PipelineFeed::fill(Feed& feed) { return state_->fill(feed); }
std::int64_t PipelineFeed::batches() const { return state_->batches(); }
InputReport PipelineFeed::report() const { return state_->report(); }

}  // namespace paceline
