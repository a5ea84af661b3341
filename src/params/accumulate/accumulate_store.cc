#include "params/accumulate/accumulate_store.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "params/accumulate/accumulate_control.h"
#include "params/accumulate/contribution_sum.h"
#include "params/clip_scale.h"
#include "params/forwarding_store.h"

namespace paceline {
namespace {

bool updates(const PlanBinding& plan) {
  return std::ranges::any_of(plan.uses, &PlanBinding::Use::updated);
}

class AccumulateSteps : public StoreSteps {
 public:
  AccumulateSteps(ParameterStore& below, const PlanBinding& plan, float clip_norm, int steps,
                  ThreadPool* pool)
      : below_(below.bind(binding_below(below.variables(), plan, steps), clip_norm)),
        clips_(clip_norm > 0 && std::isfinite(clip_norm) && below_->norm_by() == NormBy::kPlan),
        clip_norm_(clip_norm),
        steps_(steps),
        use_of_(below.variables().size(), -1) {
    for (const PlanBinding::Use& use : plan.uses) {
      if (!use.updated) continue;
      const VariableSpec& spec = below.variables()[std::size_t(use.variable)];
      use_of_[std::size_t(use.variable)] = int(sums_.size());
      sums_.push_back(std::make_unique<ContributionSum>(spec, use.most_rows, steps, pool));
      is_gradient_.push_back(spec.rule.takes_gradient());
    }
    squares_.resize(sums_.size());
  }

  NormBy norm_by() const override { return NormBy::kStore; }
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& scalars) override;
  void count_waits(StepAccount& account) override {
    StoreSteps::count_waits(account);
    below_->count_waits(account);
  }
  AsyncView need(VariableId variable) override { return below_->need(variable); }
  AsyncView place(VariableId variable) override { return sum_of(variable).place(); }
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override;
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override;

 private:
  static PlanBinding binding_below(std::span<const VariableSpec> variables, const PlanBinding& plan,
                                   int steps);
  std::size_t use(VariableId variable) const {
    const int use = use_of_.at(std::size_t(variable));
    PACELINE_CHECK(use >= 0 && "the plan said that it updates the variable");
    return std::size_t(use);
  }
  ContributionSum& sum_of(VariableId variable) { return *sums_[use(variable)]; }
  bool ends_window() const { return made_ + 1 == steps_; }

  const std::unique_ptr<StoreSteps> below_;
  const bool clips_;
  const float clip_norm_;
  const int steps_;
  std::vector<int> use_of_;                             // by variable: index in sums_, or −1
  std::vector<std::unique_ptr<ContributionSum>> sums_;  // in the order of the plan's uses
  std::vector<bool> is_gradient_;                       // by sum: part of the norm
  std::vector<double> squares_;  // by sum: the squares of the mean; 0: not part of the norm
  StepKind kind_ = StepKind::kTrain;
  int made_ = 0;               // steps of the window so far
  bool skipped_ = false;       // a step of the window had NaN, so the window's mean has NaN
  std::int64_t examples_ = 0;  // examples of the window so far
  std::int64_t first_ = 0;     // the examples of the window's first step
  // The weight of this step: its examples, divided by those of the window's first step.
  float weight_ = 1;
};

PlanBinding AccumulateSteps::binding_below(std::span<const VariableSpec> variables,
                                           const PlanBinding& plan, int steps) {
  PlanBinding below = plan;
  for (PlanBinding::Use& use : below.uses) {
    PACELINE_CHECK(!use.streamed);
    use.most_rows = ContributionSum::most_rows_of_mean(variables[std::size_t(use.variable)],
                                                       use.most_rows, steps);
  }
  return below;
}

void AccumulateSteps::begin_step(StepKind kind, std::span<const RowSet> rows,
                                 const StepScalars& scalars) {
  kind_ = kind;
  if (kind != StepKind::kTrain) return below_->begin_step(kind, rows, scalars);
  if (made_ == 0) first_ = scalars.examples;
  weight_ = first_ > 0 ? float(double(scalars.examples) / double(first_)) : 1;
  StepScalars whole = scalars;
  whole.examples = examples_ += scalars.examples;
  below_->begin_step(ends_window() ? StepKind::kTrain : StepKind::kFetch, rows, whole);
}

// The sums lie in host memory, so the store below must give a place in host memory, too.
void AccumulateSteps::ready(VariableId variable, const Contribution& contribution,
                            const Event& event) {
  ContributionSum& sum = sum_of(variable);
  wait_on_host(event);
  sum.add(contribution, weight_);
  if (!ends_window()) return;
  const AsyncView place = below_->place(variable);
  wait_on_host(place.event);
  const TensorView& mean = place.view;
  const Contribution whole = sum.take_mean(mean);
  // Sums the squares before the store below may change the mean.
  if (clips_ && is_gradient_[use(variable)]) squares_[use(variable)] = sum.squares(mean);
  below_->ready(variable, whole, {});
}

StepHandle& AccumulateSteps::end_step(float clip_scale, std::span<const RowSet> next_rows) {
  if (kind_ != StepKind::kTrain) return below_->end_step(clip_scale, next_rows);
  skipped_ = skipped_ || is_skipped(clip_scale);
  if (!ends_window()) {
    ++made_;
    return below_->end_step(1, {});
  }
  made_ = 0;
  examples_ = 0;
  if (std::exchange(skipped_, false)) return below_->end_step(kSkipContribution, {});
  return below_->end_step(clips_ ? clip_scale_of(norm_of(squares_), clip_norm_) : 1, {});
}

class AccumulateStore : public ForwardingStore<SavableStore> {
 public:
  AccumulateStore(std::shared_ptr<SavableStore> below, int steps, ThreadPool* pool)
      : ForwardingStore(*below), below_(std::move(below)), steps_(steps), pool_(pool) {}

  std::span<const VariableSpec> kept_variables() const override { return below_->kept_variables(); }
  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override {
    if (!updates(plan)) return below_->bind(plan, clip_norm);
    return std::make_unique<AccumulateSteps>(*below_, plan, clip_norm, steps_, pool_);
  }

  std::vector<std::string> prepare_saving(const std::string& folder) override {
    return below_->prepare_saving(folder);
  }
  void mark() override { below_->mark(); }
  SavedShards write_shards(const std::string& folder) override {
    SavedShards shards = below_->write_shards(folder);
    for (TaskState& other : shards.others) other.step *= steps_;
    return shards;
  }

 private:
  const std::shared_ptr<SavableStore> below_;
  const int steps_;
  ThreadPool* const pool_;
};

}  // namespace

JoinedStrategy accumulate(JoinedStrategy below, int steps, ThreadPool* pool) {
  PACELINE_CHECK(steps > 1);
  return {std::make_shared<AccumulateStore>(std::move(below.store), steps, pool),
          std::make_shared<AccumulateControl>(std::move(below.control), steps)};
}

}  // namespace paceline
