// A feed that fills a batch in memory of its own, for a step to come.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/open_dimension.h"
#include "paceline/session.h"
#include "train/input_normals.h"

namespace paceline {

/// A feed that holds one batch. Its memory serves the next batch again.
class BatchFeed : public Feed {
 public:
  /// If `keeps` is true, the next batch has the inputs that this one keeps. Otherwise the feed to
  /// which this batch is given keeps them.
  explicit BatchFeed(bool keeps = false) : keeps_(keeps) {}
  /// Empties the batch; the next inputs are for the task's own step `step`. `position` is null for
  /// an evaluation.
  void begin(std::int64_t step, const TaskPosition* position,
             std::shared_ptr<const InputNormals> normals, std::shared_ptr<RecordBlocks> blocks);
  /// Ends a batch that keeps: inputs that were kept, and not filled anew, are part of it, unless
  /// they are of other sizes.
  void end();
  /// Fills the inputs of `feed` as this one's were filled, and changes its position as this one's
  /// was changed. Throws kFailedPrecondition when the batch depends on the step that it was filled
  /// for, and `feed` is for another.
  void give(Feed& feed) const;
  /// Takes the inputs that were not filled from `other`, which keeps them.
  void take_kept(const BatchFeed& other);

  TensorView view(Value input) override;
  TensorView view(Value input, const Shape& shape) override;
  Feed& normal(Value input) override;
  Feed& set(Value input, const Tensor& tensor) override;
  Feed& keep(Value input) override;
  Feed& set_once(Value input, const Tensor& tensor) override;
  TaskPosition& position() override { return position_; }
  bool evaluates() const override { return evaluates_; }
  void stop() override { stopped_ = true; }
  std::int64_t step() const override;
  std::shared_ptr<RecordBlocks> record_blocks() const override { return blocks_; }
  std::shared_ptr<const InputNormals> normals() const override { return normals_; }
  bool stopped() const { return stopped_; }
  /// Returns the sizes of the open dimensions of the inputs that were filled.
  const OpenSizes& sizes() const { return sizes_; }

 private:
  struct Input {
    Value input;
    Tensor memory;  // undefined before it is filled the first time
    bool fed = false, kept = false;
    Tensor once;  // in place of what was filled
  };
  Input& entry(Value input);
  Shape shape_of(Value input) const;
  void add_sizes_of(Value input, const Shape& shape);
  void check_step(const Feed& feed) const;
  void give_position(Feed& feed) const;

  const bool keeps_;
  std::vector<Input> inputs_;
  OpenSizes sizes_;
  std::int64_t step_ = 0;
  mutable bool used_step_ = false;
  TaskPosition before_, position_;
  std::shared_ptr<const InputNormals> normals_;
  std::shared_ptr<RecordBlocks> blocks_;
  bool stopped_ = false, evaluates_ = false;
};

}  // namespace paceline
