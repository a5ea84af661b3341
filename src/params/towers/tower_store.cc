#include "params/towers/tower_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace paceline {

class TowerStore::OfTower : public ParameterStore {
 public:
  OfTower(TowerStore& all, int tower) : all_(all), below_(all.below_), tower_(tower) {}

  std::span<const VariableSpec> variables() const override { return below_.variables(); }
  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override {
    if (std::ranges::none_of(plan.uses, &PlanBinding::Use::updated)) {
      return below_.bind(plan, clip_norm);
    }
    return all_.group(bound_++, plan, clip_norm).steps(tower_);
  }
  void write(std::vector<VariableState> states, std::int64_t global_step) override {
    below_.write(std::move(states), global_step);
  }
  bool initialised() const override { return below_.initialised(); }
  std::vector<VariableState> read(std::span<const VariableId> variables) override {
    return below_.read(variables);
  }
  std::int64_t global_step() const override { return below_.global_step(); }
  StoreAccount account() const override { return below_.account(); }
  std::vector<StoreLink> links() const override { return below_.links(); }
  Staleness staleness() const override { return below_.staleness(); }

 private:
  TowerStore& all_;
  ParameterStore& below_;
  const int tower_;
  std::size_t bound_ = 0;  // plans with updates
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
