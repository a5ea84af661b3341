#include "train/batch_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/copy_bytes.h"
#include "graph/open_graph.h"
#include "paceline/error.h"
#include "train/feed.h"

namespace paceline {
namespace {

template <typename T>
void give_changes(const std::map<std::string, T>& before, const std::map<std::string, T>& after,
                  std::map<std::string, T>& to) {
  for (const auto& [name, number] : after) {
    const auto known = before.find(name);
    if (known == before.end() || known->second != number) to[name] = number;
  }
}

}  // namespace

void BatchFeed::begin(std::int64_t step, const TaskPosition* position,
                      std::shared_ptr<const InputNormals> normals,
                      std::shared_ptr<RecordBlocks> blocks) {
  sizes_.clear();
  for (Input& input : inputs_) {
    input.fed = false;
    if (keeps_) continue;
    input.kept = false;
    input.once = Tensor();
  }
  step_ = step;
  used_step_ = stopped_ = false;
  evaluates_ = position == nullptr;
  before_ = position_ = evaluates_ ? TaskPosition() : *position;
  normals_ = std::move(normals);
  blocks_ = std::move(blocks);
}

void BatchFeed::end() {
  for (Input& input : inputs_) {
    const Tensor& kept = input.once.defined() ? input.once : input.memory;
    if (input.fed || !kept.defined() || !(input.kept || input.once.defined())) continue;
    // A kept tensor that has other sizes than this batch cannot be part of it, and need not be.
    const Shape shape = sized(input.input.shape(), sizes_);
    if (!fits(shape, kept.shape())) continue;
    add_sizes_of(input.input, kept.shape());
    input.fed = true;
  }
}

BatchFeed::Input& BatchFeed::entry(Value input) {
  const auto known = std::ranges::find(inputs_, input, &Input::input);
  if (known != inputs_.end()) return *known;
  if (!input || input.node().op().name != "input") {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[feed] '{}' is no input: only inputs can be filled ahead, and in a "
                            "graph with open dimensions",
                            input ? input.name() : "no value"));
  }
  return inputs_.emplace_back(Input{.input = input, .memory = {}, .once = {}});
}

Shape BatchFeed::shape_of(Value input) const {
  if (!input || !has_open(input.shape())) return input ? input.shape() : Shape();
  OpenSizes sizes = sizes_;
  sizes.insert(input.graph().usual_sizes().begin(), input.graph().usual_sizes().end());
  check_sized({&input, 1}, sizes);
  return sized(input.shape(), sizes);
}

void BatchFeed::add_sizes_of(Value input, const Shape& shape) {
  if (has_open(input.shape())) return add_sizes("feed", input, shape, sizes_);
  check_shape(input, input.shape(), shape);
}

TensorView BatchFeed::view(Value input) { return view(input, shape_of(input)); }

TensorView BatchFeed::view(Value input, const Shape& shape) {
  Input& filled = entry(input);
  add_sizes_of(input, shape);
  if (!filled.memory.defined() || filled.memory.shape() != shape) {
    filled.memory = Tensor(input.dtype(), shape);
  }
  filled.fed = true;
  filled.kept = false;
  filled.once = Tensor();
  return filled.memory.view();
}

Feed& BatchFeed::normal(Value input) {
  fill_normal(input, view(input), *normals_, step());
  return *this;
}

Feed& BatchFeed::set(Value input, const Tensor& tensor) {
  if (!tensor.defined()) check_fits(input, input.type(), tensor);
  copy_to_input(input, view(input, tensor.shape()), tensor);
  return *this;
}

Feed& BatchFeed::keep(Value input) {
  entry(input).kept = true;
  return *this;
}

Feed& BatchFeed::set_once(Value input, const Tensor& tensor) {
  Input& filled = entry(input);
  const Shape& shape = tensor.defined() && has_open(input.shape()) ? tensor.shape() : input.shape();
  check_fits(input, {input.dtype(), shape}, tensor);
  add_sizes_of(input, shape);
  filled.fed = true;
  filled.once = tensor;
  return *this;
}

std::int64_t BatchFeed::step() const {
  used_step_ = true;
  return step_;
}

void BatchFeed::check_step(const Feed& feed) const {
  if (!used_step_ || feed.step() == step_) return;
  throw Error(
      ErrorCode::kFailedPrecondition,
      fmt::format("[prefetch] the batch of step {} is used in step {}: steps were made with "
                  "another feed, so it must not depend on step() or normal()",
                  step_, feed.step()));
}

void BatchFeed::give_position(Feed& feed) const {
  TaskPosition& to = feed.position();
  give_changes(before_.numbers, position_.numbers, to.numbers);
  give_changes(before_.sums, position_.sums, to.sums);
}

void BatchFeed::take_kept(const BatchFeed& other) {
  for (const Input& its : other.inputs_) {
    if (!its.fed || !(its.kept || its.once.defined())) continue;
    Input& own = entry(its.input);
    if (own.fed) continue;
    const Tensor& kept = its.once.defined() ? its.once : its.memory;
    if (!fits(sized(its.input.shape(), sizes_), kept.shape())) continue;
    if (its.once.defined()) {
      set_once(its.input, its.once);
      continue;
    }
    copy_bytes(view(its.input, its.memory.shape()).data, its.memory.raw(), its.memory.bytes());
    entry(its.input).kept = true;
  }
}

void BatchFeed::give(Feed& feed) const {
  give_position(feed);
  if (stopped_) return feed.stop();
  check_step(feed);
  for (const Input& filled : inputs_) {
    if (filled.fed && filled.once.defined()) {
      feed.set_once(filled.input, filled.once);
    } else if (filled.fed) {
      copy_bytes(feed.view(filled.input, filled.memory.shape()).data, filled.memory.raw(),
                 filled.memory.bytes());
    }
    // An input that end() has left out stays kept in this object, for a later batch of its sizes.
    const bool is_left_out = keeps_ && !filled.fed && filled.memory.defined();
    if (filled.kept && !is_left_out) feed.keep(filled.input);
  }
}

}  // namespace paceline
