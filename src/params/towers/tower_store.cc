#include "params/towers/tower_store.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "paceline/error.h"
#include "params/accumulate/contribution_sum.h"
#include "params/clip_scale.h"
#include "params/forwarding_store.h"

namespace paceline {
namespace {

PlanBinding binding_of_all(std::span<const VariableSpec> variables, const PlanBinding& plan,
                           int towers) {
  PlanBinding all = plan;
  for (PlanBinding::Use& use : all.uses) {
    PACELINE_CHECK(!use.streamed);
    use.most_rows = ContributionSum::most_rows_of_mean(variables[std::size_t(use.variable)],
                                                       use.most_rows, towers);
  }
  return all;
}

}  // namespace

/// The steps of tower 0.
class TowerGroup::Lead : public StoreSteps {
 public:
  explicit Lead(TowerGroup& group) : group_(group), below_(*group.below_) {
    order_.reserve(group.uses_.size());
  }

  NormBy norm_by() const override { return NormBy::kStore; }
  void count_waits(StepAccount& account) override {
    StoreSteps::count_waits(account);
    below_.count_waits(account);
    account_ = &account;
    if (auto* const exchange = group_.exchange(0)) exchange->count_waits(account);
  }
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& scalars) override;
  AsyncView need(VariableId variable) override;
  AsyncView place(VariableId variable) override { return group_.place(0, variable); }
  SumExchange* exchange() override { return group_.exchange(0); }
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override;
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override;

 private:
  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition condition);
  bool is_there(const Use& use);
  void hand_over(std::size_t use);
  Contribution take_mean(Use& use, const TensorView& into);

  TowerGroup& group_;
  StoreSteps& below_;
  StepAccount* account_ = nullptr;
  // The uses to which tower 0 has contributed in this step, in the order of its contributions.
  std::vector<std::size_t> order_;
  std::size_t handed_over_ = 0;  // how many of order_ were handed over
};

/// The steps of another tower.
class TowerGroup::Follow : public StoreSteps {
 public:
  Follow(TowerGroup& group, int tower) : group_(group), tower_(tower) {}

  NormBy norm_by() const override { return NormBy::kStore; }
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& scalars) override;
  AsyncView need(VariableId variable) override;
  AsyncView place(VariableId variable) override { return group_.place(tower_, variable); }
  SumExchange* exchange() override { return group_.exchange(tower_); }
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override {
    group_.give(tower_, variable, contribution, event);
  }
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override;

 private:
  class NoHandle : public StepHandle {
   public:
    std::int64_t global_step() override {
      throw Error(ErrorCode::kFailedPrecondition, "[towers] tower 0 alone knows the global step");
    }
  };

  TowerGroup& group_;
  const int tower_;
  NoHandle handle_;
};

TowerGroup::TowerGroup(ParameterStore& below, const PlanBinding& plan, float clip_norm, int towers,
                       ThreadPool* pool, bool sync_batch_norm)
    : towers_(towers),
      below_(below.bind(binding_of_all(below.variables(), plan, towers), clip_norm)),
      clips_(clip_norm > 0 && std::isfinite(clip_norm) && below_->norm_by() == NormBy::kPlan),
      clip_norm_(clip_norm),
      use_of_(below.variables().size(), -1),
      rows_(std::size_t(towers)),
      examples_(std::size_t(towers)),
      values_(below.variables().size()),
      sums_(towers) {
  for (int tower = 0; sync_batch_norm && tower < towers; ++tower) {
    exchanges_.emplace_back(*this, tower);
  }
  for (const PlanBinding::Use& use : plan.uses) {
    const VariableSpec& spec = below.variables()[std::size_t(use.variable)];
    if (spec.sparse) {
      united_.push_back({use.variable, {}});
      united_.back().ids.reserve(std::size_t(use.most_rows) * std::size_t(towers));
    }
    if (!use.updated) continue;
    use_of_[std::size_t(use.variable)] = int(uses_.size());
    uses_.push_back(std::make_unique<Use>(use, spec, towers, clips_, pool));
  }
  squares_.resize(uses_.size());
  united_sets_.reserve(united_.size());
}

TowerGroup::~TowerGroup() = default;

std::unique_ptr<StoreSteps> TowerGroup::steps(int tower) {
  PACELINE_CHECK(tower >= 0 && tower < towers_);
  if (tower == 0) return std::make_unique<Lead>(*this);
  return std::make_unique<Follow>(*this, tower);
}

void TowerGroup::fail(const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  changed_.notify_all();
}

std::optional<double> TowerGroup::norm() const {
  if (!clips_) return std::nullopt;
  return norm_of(squares_);
}

std::size_t TowerGroup::use(VariableId variable) const {
  const int use = use_of_.at(std::size_t(variable));
  PACELINE_CHECK(use >= 0 && "the plan said that it updates the variable");
  return std::size_t(use);
}

// The wait always ends, since each tower either continues, or fails and says so.
template <typename Condition>
void TowerGroup::wait(std::unique_lock<std::mutex>& lock, Condition condition) {
  changed_.wait(lock, [&] { return error_ != nullptr || condition(); });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void TowerGroup::Exchange::add_up(std::span<double> sums) {
  std::optional<AccountScope> waiting;
  if (account_ != nullptr) waiting.emplace(*account_, Activity::kWait);
  std::unique_lock lock(group_.mutex_);
  const std::int64_t round = group_.sums_.give(tower_, sums);
  if (group_.sums_.is_whole(round)) group_.changed_.notify_all();
  group_.wait(lock, [&] { return group_.sums_.is_whole(round); });
  std::ranges::copy(group_.sums_.sums(), sums.begin());
}

void TowerGroup::give(int tower, VariableId variable, const Contribution& contribution,
                      const Event& event) {
  Use& given = *uses_[use(variable)];
  const std::lock_guard lock(mutex_);
  given.given[std::size_t(tower)] = contribution;
  given.events[std::size_t(tower)] = event;
  if (++given.arrived == towers_) changed_.notify_all();
}

std::span<const RowSet> TowerGroup::unite_rows() {
  united_sets_.clear();
  for (UnitedRows& united : united_) {
    united.ids.clear();
    for (const std::span<const RowSet> rows : rows_) {
      const auto set = std::ranges::find(rows, united.variable, &RowSet::variable);
      if (set != rows.end()) united.ids.insert(united.ids.end(), set->ids.begin(), set->ids.end());
    }
    std::ranges::sort(united.ids);
    united.ids.erase(std::unique(united.ids.begin(), united.ids.end()), united.ids.end());
    united_sets_.push_back({united.variable, united.ids});
  }
  return united_sets_;
}

void TowerGroup::end_step() {
  for (const auto& use : uses_) use->arrived = 0;
  std::ranges::fill(values_, std::nullopt);
  begun_ = ended_ = 0;
  ++step_;
  changed_.notify_all();
}

// Waits until the condition holds, and counts the time of waiting for another tower, which is still
// computing.
template <typename Condition>
void TowerGroup::Lead::wait(std::unique_lock<std::mutex>& lock, Condition condition) {
  std::optional<AccountScope> waiting;
  if (account_ != nullptr) waiting.emplace(*account_, Activity::kWait);
  group_.wait(lock, condition);
}

void TowerGroup::Lead::begin_step(StepKind kind, std::span<const RowSet> rows,
                                  const StepScalars& scalars) {
  PACELINE_CHECK(kind == StepKind::kTrain);
  order_.clear();
  handed_over_ = 0;
  {
    std::unique_lock lock(group_.mutex_);
    group_.rows_[0] = rows;
    group_.examples_[0] = scalars.examples;
    wait(lock, [&] { return group_.begun_ == group_.towers_ - 1; });
  }
  StepScalars all = scalars;
  all.step /= group_.towers_;
  all.examples = std::accumulate(group_.examples_.begin(), group_.examples_.end(), std::int64_t{0});
  below_.begin_step(kind, group_.unite_rows(), all);
}

AsyncView TowerGroup::Lead::need(VariableId variable) {
  const AsyncView value = below_.need(variable);
  const std::lock_guard lock(group_.mutex_);
  group_.values_[std::size_t(variable)] = value;
  group_.changed_.notify_all();
  return value;
}

void TowerGroup::Lead::ready(VariableId variable, const Contribution& contribution,
                             const Event& event) {
  group_.give(0, variable, contribution, event);
  order_.push_back(group_.use(variable));
  for (; handed_over_ < order_.size(); ++handed_over_) {
    const std::size_t next = order_[handed_over_];
    if (!is_there(*group_.uses_[next])) return;
    hand_over(next);
  }
}

// True when all towers have contributed and no device still computes the contribution. If a device
// still computes, tower 0 does not wait while it can queue more work on its own device.
bool TowerGroup::Lead::is_there(const Use& use) {
  const std::lock_guard lock(group_.mutex_);
  return use.arrived == group_.towers_ && std::ranges::all_of(use.events, &Event::empty);
}

void TowerGroup::Lead::hand_over(std::size_t next) {
  Use& use = *group_.uses_[next];
  for (const Event& event : use.events) wait_on_host(event);
  const AsyncView place = below_.place(use.variable);
  wait_on_host(place.event);
  const Contribution mean = take_mean(use, place.view);
  // Reads the squares before the store below may change the mean.
  if (group_.clips_ && use.mean.spec().rule.takes_gradient()) {
    group_.squares_[next] = use.mean.squares();
  }
  below_.ready(use.variable, mean, {});
}

// Takes the mean. The time counts as apply, since the mean is the first part of applying.
Contribution TowerGroup::Lead::take_mean(Use& use, const TensorView& into) {
  std::optional<AccountScope> applying;
  if (account_ != nullptr) applying.emplace(*account_, Activity::kApply);
  return use.mean.take(use.given, group_.examples_, into);
}

StepHandle& TowerGroup::Lead::end_step(float own_scale, std::span<const RowSet>) {
  for (; handed_over_ < order_.size(); ++handed_over_) {
    const std::size_t next = order_[handed_over_];
    {
      std::unique_lock lock(group_.mutex_);
      wait(lock, [&] { return group_.uses_[next]->arrived == group_.towers_; });
    }
    hand_over(next);
  }
  bool skipped = false;
  {
    std::unique_lock lock(group_.mutex_);
    wait(lock, [&] { return group_.ended_ == group_.towers_ - 1; });
    skipped = std::exchange(group_.skipped_, false) || is_skipped(own_scale);
    group_.end_step();
  }
  const float scale = skipped         ? kSkipContribution
                      : group_.clips_ ? clip_scale_of(norm_of(group_.squares_), group_.clip_norm_)
                                      : 1;
  return below_.end_step(scale, {});
}

void TowerGroup::Follow::begin_step(StepKind kind, std::span<const RowSet> rows,
                                    const StepScalars& scalars) {
  PACELINE_CHECK(kind == StepKind::kTrain);
  const std::lock_guard lock(group_.mutex_);
  group_.rows_[std::size_t(tower_)] = rows;
  group_.examples_[std::size_t(tower_)] = scalars.examples;
  ++group_.begun_;
  group_.changed_.notify_all();
}

AsyncView TowerGroup::Follow::need(VariableId variable) {
  std::unique_lock lock(group_.mutex_);
  const std::optional<AsyncView>& value = group_.values_.at(std::size_t(variable));
  group_.wait(lock, [&] { return value.has_value(); });
  return *value;
}

StepHandle& TowerGroup::Follow::end_step(float own_scale, std::span<const RowSet>) {
  std::unique_lock lock(group_.mutex_);
  group_.skipped_ = group_.skipped_ || is_skipped(own_scale);
  ++group_.ended_;
  group_.changed_.notify_all();
  group_.wait(lock, [&, step = group_.step_] { return group_.step_ != step; });
  return handle_;
}

class TowerStore::OfTower : public ForwardingStore<ParameterStore> {
 public:
  OfTower(TowerStore& all, int tower)
      : ForwardingStore(all.below_), all_(all), below_(all.below_), tower_(tower) {}

  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override {
    if (std::ranges::none_of(plan.uses, &PlanBinding::Use::updated)) {
      return below_.bind(plan, clip_norm);
    }
    return all_.group(bound_++, plan, clip_norm).steps(tower_);
  }

 private:
  TowerStore& all_;
  ParameterStore& below_;
  const int tower_;
  std::size_t bound_ = 0;  // how many plans with updates this tower has bound
};

TowerStore::TowerStore(ParameterStore& below, int towers, ThreadPool* pool, bool sync_batch_norm)
    : below_(below), pool_(pool), sync_batch_norm_(sync_batch_norm) {
  PACELINE_CHECK(towers >= 1 && towers <= kMostTowers);
  for (int i = 0; i < towers; ++i) stores_.push_back(std::make_unique<OfTower>(*this, i));
}

TowerStore::~TowerStore() = default;

int TowerStore::towers() const { return int(stores_.size()); }

ParameterStore& TowerStore::of(int tower) { return *stores_.at(std::size_t(tower)); }

void TowerStore::fail(const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  for (const auto& group : groups_) group->fail(error);
}

std::optional<double> TowerStore::norm(std::size_t n) const {
  const std::lock_guard lock(mutex_);
  return groups_.at(n)->norm();
}

TowerGroup& TowerStore::group(std::size_t n, const PlanBinding& plan, float clip_norm) {
  const std::lock_guard lock(mutex_);
  PACELINE_CHECK(n <= groups_.size());
  if (n == groups_.size()) {
    groups_.push_back(
        std::make_unique<TowerGroup>(below_, plan, clip_norm, towers(), pool_, sync_batch_norm_));
  }
  return *groups_[n];
}

}  // namespace paceline
