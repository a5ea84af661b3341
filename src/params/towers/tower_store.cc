#include "params/towers/tower_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "params/forwarding_store.h"

namespace paceline {

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
