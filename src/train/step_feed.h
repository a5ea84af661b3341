// The feed for the inputs of one executor.
#pragma once

#include <memory>

#include "exec/executor.h"
#include "paceline/session.h"
#include "train/input_normals.h"

namespace paceline {

class StepFeed : public Feed {
 public:
  /// Makes a feed for one step, whose batch has the number `step` in the task. All arguments must
  /// outlive the feed. `position` is null for an evaluation. With `anew`, an input that the
  /// executor keeps must be given again.
  StepFeed(Executor& executor, const std::shared_ptr<const InputNormals>& normals,
           std::int64_t step, TaskPosition* position,
           std::shared_ptr<RecordBlocks> blocks = nullptr, bool anew = false);

  TensorView view(Value input) override;
  TensorView view(Value input, const Shape& shape) override;
  Feed& normal(Value input) override;
  Feed& set(Value input, const Tensor& tensor) override;
  Feed& keep(Value input) override;
  Feed& set_once(Value input, const Tensor& tensor) override;
  TaskPosition& position() override { return position_ != nullptr ? *position_ : none_; }
  bool evaluates() const override { return position_ == nullptr; }
  void stop() override { stopped_ = true; }
  std::int64_t step() const override { return step_; }
  std::shared_ptr<RecordBlocks> record_blocks() const override { return blocks_; }
  std::shared_ptr<const InputNormals> normals() const override { return normals_; }
  bool stopped() const { return stopped_; }
  /// Takes over the inputs that `other`, an executor of the same plan, keeps and that this feed has
  /// not filled.
  void take_kept(Executor& other);
  /// Throws kFailedPrecondition unless every input that the plan reads was filled, or the feed
  /// stopped.
  void check_fed() const;

 private:
  Executor& executor_;
  const std::shared_ptr<const InputNormals>& normals_;
  std::int64_t step_;
  TaskPosition* position_;
  TaskPosition none_;
  std::shared_ptr<RecordBlocks> blocks_;
  bool stopped_ = false;
};

}  // namespace paceline
