// A feed that fills a batch in memory of its own, for a later step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/open_dimension.h"
#include "paceline/session.h"
#include "train/input_normals.h"

namespace paceline {

/// A feed that holds one batch at a time, and uses its memory again for the next batch.
class BatchFeed : public Feed {
 public:
  /// If `keeps` is true, the inputs that one batch keeps are part of this object's next batch.
  /// Otherwise the feed to which give() passes the batch keeps them.
  explicit BatchFeed(bool keeps = false) : keeps_(keeps) {}
  /// Empties the batch; the next inputs are for the task's own step `step`. `position` is null for
  /// an evaluation.
  void begin(std::int64_t step, const TaskPosition* position,
             std::shared_ptr<const InputNormals> normals, std::shared_ptr<RecordBlocks> blocks);
  /// Completes the batch if `keeps` is true: adds the inputs that an earlier batch kept and this
  /// one did not fill, unless their sizes differ from this batch's.
  void end();
  /// Fills the inputs of `feed` with this batch, and changes the position of `feed` as filling the
  /// batch changed this object's. Stops `feed` if this object was stopped. Throws
  /// kFailedPrecondition if the batch depends on the step for which it was filled, and `feed` is
  /// for another step.
  void give(Feed& feed) const;
  /// Takes over the inputs that `other` keeps and this batch has not filled, if their sizes fit.
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
    Tensor once;  // the tensor of set_once(), used instead of `memory`
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
