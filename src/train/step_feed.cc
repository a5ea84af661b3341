#include "train/step_feed.h"

#include <string>
#include <utility>

#include "base/copy_bytes.h"
#include "train/feed.h"

namespace paceline {

StepFeed::StepFeed(Executor& executor, const std::shared_ptr<const InputNormals>& normals,
                   std::int64_t step, TaskPosition* position, std::shared_ptr<RecordBlocks> blocks,
                   bool anew)
    : executor_(executor),
      normals_(normals),
      step_(step),
      position_(position),
      blocks_(std::move(blocks)) {
  executor_.fed_inputs().begin(!anew);
}

TensorView StepFeed::view(Value input) {
  const TensorView memory = executor_.view(input);
  executor_.fed_inputs().note(input.node().name());
  return memory;
}

TensorView StepFeed::view(Value input, const Shape& shape) {
  const TensorView memory = view(input);
  check_shape(input, memory.shape, shape);
  return memory;
}

Feed& StepFeed::normal(Value input) {
  fill_normal(input, view(input), *normals_, step_);
  return *this;
}

Feed& StepFeed::set(Value input, const Tensor& tensor) {
  copy_to_input(input, view(input), tensor);
  return *this;
}

Feed& StepFeed::keep(Value input) {
  executor_.fed_inputs().keep(input.node().name());
  return *this;
}

Feed& StepFeed::set_once(Value input, const Tensor& tensor) {
  FedInputs& fed = executor_.fed_inputs();
  if (fed.has_kept(input.node().name(), tensor)) return *this;
  set(input, tensor);
  fed.keep(input.node().name(), tensor);
  return *this;
}

void StepFeed::take_kept(Executor& other) {
  executor_.fed_inputs().take_kept(other.fed_inputs(), [&](const std::string& input) {
    const TensorView to = executor_.view(input);
    copy_bytes(to.data, other.view(input).data, to.bytes());
  });
}

void StepFeed::check_fed() const {
  if (!stopped_) executor_.fed_inputs().check();
}

}  // namespace paceline
