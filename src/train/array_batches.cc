#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/philox.h"
#include "base/random_order.h"
#include "base/row_count.h"
#include "graph/open_graph.h"
#include "paceline/error.h"
#include "paceline/input.h"
#include "train/feed.h"

namespace paceline {
namespace {

[[noreturn]] void refuse_arrays(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "[array batches] " + message);
}

std::int64_t rows_of(const Shape& shape) { return shape.rank() > 0 ? shape[0] : 0; }

// Returns the number of rows in a batch of this input. If dimension 0 of the input is open, this is
// `asked`, or the graph's usual size if `asked` is 0.
std::int64_t batch_of(Value input, std::int64_t asked) {
  const std::int64_t rows = rows_of(input.shape());
  if (!is_open(rows)) {
    if (asked == 0 || asked == rows) return rows;
    refuse_arrays(fmt::format("a batch of {} is asked for, and input '{}' is {}", asked,
                              input.name(), input.type().str()));
  }
  if (asked < 0) refuse_arrays(fmt::format("a batch of {} is asked for", asked));
  const auto usual = input.graph().usual_sizes().find(open_name(rows));
  if (asked > 0) return asked;
  if (usual != input.graph().usual_sizes().end()) return usual->second;
  refuse_arrays(
      fmt::format("input '{}' is {}: say how many examples a batch has "
                  "(ArrayBatchesOptions::batch)",
                  input.name(), input.type().str()));
}

}  // namespace

ArrayBatches::ArrayBatches(std::vector<std::pair<Value, Tensor>> arrays,
                           const ArrayBatchesOptions& options)
    : arrays_(std::move(arrays)), options_(options) {
  if (arrays_.empty()) refuse_arrays("there is no array");
  batch_ = batch_of(arrays_[0].first, options_.batch);
  for (const auto& array : arrays_) check(array);
  check_options();
  const std::int64_t all = all_examples();
  // All parts have the same number of examples, so that all workers make the same number of steps.
  examples_ = all / options_.parts;
  batches_ = examples_ / batch_;
  if (options_.last != LastBatch::kDrop && examples_ % batch_ != 0) ++batches_;
  if (batches_ < 1) {
    const bool has_some = examples_ > 0;
    refuse_arrays(
        fmt::format("{} examples in {} part{} give no batch of {}: {}", all, options_.parts,
                    options_.parts == 1 ? "" : "s", batch_,
                    has_some ? "LastBatch::kShort and kPad take fewer" : "each part needs one"));
  }
  order_.resize(std::size_t(all));
}

std::int64_t ArrayBatches::all_examples() const { return rows_of(arrays_[0].second.shape()); }

void ArrayBatches::check(const std::pair<Value, Tensor>& array) const {
  const auto& [input, tensor] = array;
  const ValueType given{tensor.dtype(), tensor.shape()};
  const std::int64_t rows = rows_of(input.shape());
  if (rows < 1 || input.dtype() != tensor.dtype() ||
      tensor.shape().rank() != input.shape().rank() ||
      !fits(input.shape(), with_rows(tensor.shape(), rows))) {
    refuse_arrays(
        fmt::format("input '{}' is {}, its array is {}: they may differ in dimension 0 alone",
                    input.name(), input.type().str(), given.str()));
  }
  const std::int64_t batch = is_open(rows) ? batch_ : rows;
  if (tensor.shape()[0] != all_examples()) {
    refuse_arrays(fmt::format("the array of input '{}' has {} examples, and that of '{}' {}",
                              arrays_[0].first.name(), all_examples(), input.name(),
                              tensor.shape()[0]));
  }
  if (batch != batch_) {
    refuse_arrays(fmt::format("a batch of input '{}' has {} examples, and one of '{}' {}",
                              arrays_[0].first.name(), batch_, input.name(), batch));
  }
  if (options_.last == LastBatch::kShort && !is_open(rows)) {
    refuse_arrays(
        fmt::format("the last batch is a short one, and input '{}' is {}: dimension 0 "
                    "must be open (Graph::open)",
                    input.name(), input.type().str()));
  }
}

void ArrayBatches::check_options() const {
  if (options_.parts < 1 || options_.part < 0 || options_.part >= options_.parts) {
    refuse_arrays(fmt::format("there is no part {} of {}", options_.part, options_.parts));
  }
  if (!options_.weights) return;
  const ValueType wanted{DType::kFloat32, Shape{batch_}};
  if (options_.weights.dtype() != wanted.dtype || !fits(options_.weights.shape(), wanted.shape)) {
    refuse_arrays(fmt::format("the weights' input '{}' is {}, not {}", options_.weights.name(),
                              options_.weights.type().str(), wanted.str()));
  }
}

std::int64_t ArrayBatches::number(const TaskPosition& position, const char* key) const {
  const auto found = position.numbers.find(options_.name + key);
  return found != position.numbers.end() ? found->second : 0;
}

std::int64_t ArrayBatches::epoch(const TaskPosition& position) const {
  return number(position, ".epoch");
}

// The position counts batches. With another batch size the epoch continues after the same number of
// examples, rounded down to whole batches, so that no example is left out.
std::int64_t ArrayBatches::next_batch(const TaskPosition& position) const {
  const std::int64_t batch = number(position, ".batch"), rows = number(position, ".rows");
  if (rows < 1 || rows == batch_) return batch;
  if (batch > examples_ / rows) return batches_;
  return batch * rows / batch_;
}

void ArrayBatches::begin_epoch(std::int64_t epoch) {
  if (epoch_ == epoch) return;
  std::iota(order_.begin(), order_.end(), 0);
  if (options_.shuffle) shuffle(order_, random_key(options_.seed, fmt::format("epoch {}", epoch)));
  epoch_ = epoch;
}

void ArrayBatches::operator()(Feed& feed) {
  check_trains(feed);
  TaskPosition& position = feed.position();
  const std::int64_t epoch = this->epoch(position), batch = next_batch(position);
  const bool over = batch >= batches_;
  position.numbers[options_.name + ".epoch"] = epoch + (over ? 1 : 0);
  position.numbers[options_.name + ".batch"] = over ? 0 : batch + 1;
  position.numbers[options_.name + ".rows"] = batch_;
  if (over) return feed.stop();
  fill(feed, batch, epoch);
}

std::int64_t ArrayBatches::fill(Feed& feed, std::int64_t batch, std::int64_t epoch) {
  if (batch < 0 || batch >= batches_) {
    refuse_arrays(fmt::format("there is no batch {}: an epoch has {}", batch, batches_));
  }
  begin_epoch(epoch);
  const std::int64_t first = batch * batch_, count = std::min(batch_, examples_ - first);
  copy_batch(feed, first, count);
  return count;
}

void ArrayBatches::copy_batch(Feed& feed, std::int64_t first, std::int64_t count) const {
  const std::int64_t begin = options_.part * examples_ + first;
  const std::int64_t rows = options_.last == LastBatch::kShort ? count : batch_;
  for (const auto& [input, tensor] : arrays_) {
    const TensorView to = feed.view(input, with_rows(tensor.shape(), rows));
    auto* row = to.as<std::byte>();
    const std::size_t bytes = to.bytes() / std::size_t(rows);
    const auto* const from = static_cast<const std::byte*>(tensor.raw());
    for (std::int64_t i = 0; i < count; ++i, row += bytes) {
      std::memcpy(row, from + std::size_t(order_[std::size_t(begin + i)]) * bytes, bytes);
    }
    std::memset(row, 0, std::size_t(rows - count) * bytes);
  }
  if (!options_.weights) return;
  const std::span<float> weights = feed.data<float>(options_.weights, {rows});
  for (std::int64_t i = 0; i < rows; ++i) weights[std::size_t(i)] = i < count ? 1.0f : 0.0f;
}

}  // namespace paceline
