#include "train/batch_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/copy_bytes.h"
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

void BatchFeed::begin(std::int64_t step, const TaskPosition& position,
                      std::shared_ptr<const InputNormals> normals,
                      std::shared_ptr<RecordBlocks> blocks) {
  for (Input& input : inputs_) {
    input.fed = input.kept = false;
    input.once = Tensor();
  }
  step_ = step;
  used_step_ = stopped_ = false;
  before_ = position_ = position;
  normals_ = std::move(normals);
  blocks_ = std::move(blocks);
}

BatchFeed::Input& BatchFeed::entry(Value input) {
  const auto known = std::ranges::find(inputs_, input, &Input::input);
  if (known != inputs_.end()) return *known;
  if (!input || input.node().op().name != "input") {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[prefetch] '{}' is no input: only inputs can be filled ahead",
                            input ? input.name() : "no value"));
  }
  return inputs_.emplace_back(Input{input, Tensor(input.dtype(), input.shape()), false, false, {}});
}

TensorView BatchFeed::view(Value input) {
  Input& filled = entry(input);
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
  copy_to_input(input, view(input), tensor);
  return *this;
}

Feed& BatchFeed::keep(Value input) {
  entry(input).kept = true;
  return *this;
}

Feed& BatchFeed::set_once(Value input, const Tensor& tensor) {
  check_fits(input, input.type(), tensor);
  entry(input).once = tensor;
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
    if (!its.kept || !its.fed) continue;
    Input& own = entry(its.input);
    if (own.fed || own.once.defined()) continue;
    copy_bytes(own.memory.raw(), its.memory.raw(), its.memory.bytes());
    own.fed = own.kept = true;
  }
}

void BatchFeed::give(Feed& feed) const {
  give_position(feed);
  if (stopped_) return feed.stop();
  check_step(feed);
  for (const Input& filled : inputs_) {
    if (filled.once.defined()) {
      feed.set_once(filled.input, filled.once);
    } else if (filled.fed) {
      copy_bytes(feed.view(filled.input).data, filled.memory.raw(), filled.memory.bytes());
    }
    if (filled.kept) feed.keep(filled.input);
  }
}

}  // namespace paceline
