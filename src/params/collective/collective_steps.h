// The steps of one plan on a store of an all-reduce.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "params/collective/collective_driver.h"

namespace paceline {

/// Every worker applies the rule to all of each variable, from the same sums.
class CollectiveSteps : public StoreSteps, private SumExchange {
 public:
  /// Counts the steps that were left out in `skipped`. Throws kInvalidArgument when the plan
  /// updates what is not trained.
  CollectiveSteps(CollectiveDriver& driver, HeldVariables& variables,
                  const CollectiveOptions& options, const ContributionLayout& layout,
                  const PlanBinding& plan, float clip_norm, std::int64_t& skipped);

  NormBy norm_by() const override { return NormBy::kStore; }
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& scalars) override;
  AsyncView need(VariableId variable) override;
  AsyncView place(VariableId variable) override;
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override;
  SumExchange* exchange() override { return options_.sync_batch_norm ? this : nullptr; }
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override;

 private:
  struct Handle : public StepHandle {
    explicit Handle(CollectiveSteps& of) : steps(of) {}
    std::int64_t global_step() override;
    CollectiveSteps& steps;
    std::int64_t step = 0;
  };

  void add_up(std::span<double> sums) override;
  void take_rows(VariableId variable, const Contribution& contribution);
  void apply_or_fail();
  void apply();
  void check_own() const;
  bool must_be_finite() const { return options_.on_nan == OnNan::kStop; }
  float clip_scale();
  double squares_of_bucket(std::size_t bucket);
  void apply_dense(std::size_t bucket, float clip_scale);
  void apply_whole(VariableMemory& memory, const UpdateScalars& scalars, std::size_t first);
  void apply_rows(std::size_t bucket, float clip_scale);
  std::size_t place_in(const Bucket& bucket, VariableId variable) const {
    return (layout_.offset(variable) - bucket.offset) / sizeof(float);
  }
  ThreadPool& pool() { return options_.pool != nullptr ? *options_.pool : alone_; }

  CollectiveDriver& driver_;
  HeldVariables& variables_;
  const CollectiveOptions& options_;
  const ContributionLayout& layout_;
  const float clip_norm_;
  std::int64_t& skipped_;
  std::int64_t own_step_ = 0;
  const std::shared_ptr<const std::vector<Bucket>> buckets_;
  std::vector<std::size_t> bucket_of_;   // by variable
  std::vector<std::int64_t> most_rows_;  // by variable
  std::vector<Tensor> own_places_;       // by variable: of rows that do not fit the layout
  std::vector<std::size_t> not_ready_;   // by bucket: variables that are to come
  std::vector<std::size_t> rows_;        // by bucket
  std::vector<float> learning_rates_;
  std::vector<SumPart> parts_;  // kept for its memory, as those below
  std::vector<double> block_squares_;
  std::vector<float> whole_;
  ThreadPool alone_{1};
  StepKind kind_ = StepKind::kTrain;
  Handle handle_{*this};
};

}  // namespace paceline
