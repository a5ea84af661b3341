// The stores of towers: devices of one process that make each step together.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "exec/parameter_store.h"
#include "params/towers/tower_mean.h"

namespace paceline {

/// Sums of numbers in the middle of a step, to which every tower gives its numbers. A round of sums
/// is whole once every tower has given. Numbers are added in the order of the towers. Not
/// thread-safe.
class TowerSums {
 public:
  explicit TowerSums(int towers) : parts_(std::size_t(towers)) {}

  /// Gives a tower's numbers, which stay valid until the round is whole. Returns the round.
  std::int64_t give(int tower, std::span<const double> numbers) {
    parts_[std::size_t(tower)] = numbers;
    const std::int64_t round = whole_;
    if (++given_ == parts_.size()) finish();
    return round;
  }
  bool is_whole(std::int64_t round) const { return whole_ > round; }
  /// Returns the sums of the last round. They stay valid until all towers have given their next
  /// numbers.
  std::span<const double> sums() const { return sums_; }

 private:
  void finish() {
    sums_.assign(parts_[0].begin(), parts_[0].end());
    for (std::size_t tower = 1; tower < parts_.size(); ++tower) {
      PACELINE_CHECK(parts_[tower].size() == sums_.size());
      for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += parts_[tower][i];
    }
    given_ = 0;
    ++whole_;
  }

  std::vector<std::span<const double>> parts_;  // by tower
  std::vector<double> sums_;
  std::size_t given_ = 0;
  std::int64_t whole_ = 0;  // whole rounds
};

/// The towers of one training, which make each step together: for the store below, their plans are
/// one plan.
///
/// Tower 0 leads. In a step only its thread calls the store below. The other towers take the values
/// that tower 0 has asked for, and wait if tower 0 has not asked yet. The means of contributions go
/// to the store below in the order in which tower 0 made its contributions, each as soon as all
/// towers have contributed. No tower ends a step before tower 0 has taken the contributions of all
/// towers.
class TowerGroup {
 public:
  /// `pool` computes the means; it may be null. `below` and `pool` must outlive the group. With
  /// `sync_batch_norm`, the towers add up numbers in the middle of a step, by exchange().
  TowerGroup(ParameterStore& below, const PlanBinding& plan, float clip_norm, int towers,
             ThreadPool* pool, bool sync_batch_norm = false);
  ~TowerGroup();
  TowerGroup(const TowerGroup&) = delete;
  TowerGroup& operator=(const TowerGroup&) = delete;

  /// Makes the steps of one tower, from 0. The group must outlive them.
  std::unique_ptr<StoreSteps> steps(int tower);
  /// Ends every wait of every tower, now and later, with this error, or with the first one if there
  /// are several errors. Any thread may call it.
  void fail(const std::exception_ptr& error);
  /// Returns the norm of the last step's means, if they are clipped and the store below does not
  /// compute it. Call it between two steps.
  std::optional<double> norm() const;

 private:
  class Lead;
  class Follow;
  /// Sums the numbers of a tower's kernels with those of the other towers.
  class Exchange : public SumExchange {
   public:
    Exchange(TowerGroup& group, int tower) : group_(group), tower_(tower) {}
    void count_waits(StepAccount& account) { account_ = &account; }
    void add_up(std::span<double> sums) override;

   private:
    TowerGroup& group_;
    const int tower_;
    StepAccount* account_ = nullptr;
  };
  /// The contributions to a variable in this step.
  struct Use {
    Use(const PlanBinding::Use& use, const VariableSpec& spec, int towers, bool squares,
        ThreadPool* pool)
        : variable(use.variable),
          mean(spec, use.most_rows, towers, squares, pool),
          given(std::size_t(towers)),
          events(std::size_t(towers)) {}
    VariableId variable;
    TowerMean mean;
    std::vector<Contribution> given;  // by tower
    std::vector<Event> events;        // by tower
    int arrived = 0;
  };
  /// The rows of a sparse variable that the batches of all towers read.
  struct UnitedRows {
    VariableId variable;
    std::vector<std::int32_t> ids;
  };

  std::size_t use(VariableId variable) const;
  TensorView place(int tower, VariableId variable) {
    return uses_[use(variable)]->mean.place(tower);
  }
  void give(int tower, VariableId variable, const Contribution& contribution, const Event& event);
  Exchange* exchange(int tower) {
    return exchanges_.empty() ? nullptr : &exchanges_[std::size_t(tower)];
  }
  std::span<const RowSet> unite_rows();
  void end_step();
  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition condition);

  const int towers_;
  const std::unique_ptr<StoreSteps> below_;
  const bool clips_;
  const float clip_norm_;
  std::vector<int> use_of_;                 // by variable: index in uses_, or −1
  std::vector<std::unique_ptr<Use>> uses_;  // in the order of the plan's uses
  std::vector<double> squares_;  // by use: the sum of squares of the mean; 0: not part of the norm
  std::vector<UnitedRows> united_;
  std::vector<RowSet> united_sets_;

  std::vector<Exchange> exchanges_;  // by tower; empty: none

  std::mutex mutex_;  // guards all members below, and each Use's members for this step
  std::condition_variable changed_;
  std::vector<std::span<const RowSet>> rows_;  // by tower
  std::vector<std::int64_t> examples_;         // of this step, by tower
  /// By variable; empty: tower 0 has not asked for the value in this step.
  std::vector<std::optional<AsyncView>> values_;
  bool skipped_ = false;  // the contribution of some tower has NaN
  TowerSums sums_;
  int begun_ = 0, ended_ = 0;  // how many of the other towers have begun, and have ended, this step
  std::int64_t step_ = 0;      // how many steps all towers have ended
  std::exception_ptr error_;
};

/// A store over any other store, for several towers. Each tower has a store of its own. The plans
/// of these stores make their steps at the same time, each on a thread of its own. All read the
/// values of the store below, and the mean of their contributions is one contribution to the store
/// below, in one step.
/// - With clipping the mean is clipped by its norm (NormBy::kStore), unless the store below
///   computes a norm itself.
/// - A tower's step has the number of its batch: the task's own step times the number of towers,
///   plus the tower's index. The store below gets the task's own step, the learning rates of tower
///   0's request, and the examples of all towers.
/// - Each contribution counts by its examples; if no tower has any, all count alike.
/// - The next batch's rows are not asked for ahead.
class TowerStore {
 public:
  /// `pool` computes the means; it may be null. `pool` and `below` must outlive the store. With
  /// `sync_batch_norm`, the towers add up numbers in the middle of a step, by exchange().
  TowerStore(ParameterStore& below, int towers, ThreadPool* pool, bool sync_batch_norm = false);
  ~TowerStore();
  TowerStore(const TowerStore&) = delete;
  TowerStore& operator=(const TowerStore&) = delete;

  int towers() const;
  /// Returns the store of one tower, from 0.
  ///
  /// Plans with updates go together: the n-th such plan of a tower makes its steps with the n-th
  /// such plan of each other tower, and all of them must be alike. A plan without updates belongs
  /// to one tower. The calls on such a plan, and all other calls on the store, must be between two
  /// steps.
  ParameterStore& of(int tower);
  /// Call it when a tower cannot continue: every wait of the others ends with this error, or with
  /// the first one if there are several errors. Any thread may call it.
  void fail(const std::exception_ptr& error);
  /// Returns the norm of the mean in the last step of the n-th plan with updates, if the mean is
  /// clipped and the store below does not compute the norm. Call it between two steps.
  std::optional<double> norm(std::size_t n) const;

 private:
  class OfTower;
  TowerGroup& group(std::size_t n, const PlanBinding& plan, float clip_norm);

  ParameterStore& below_;
  ThreadPool* const pool_;
  const bool sync_batch_norm_;
  mutable std::mutex mutex_;  // protects groups_
  std::vector<std::unique_ptr<TowerGroup>> groups_;
  std::vector<std::unique_ptr<OfTower>> stores_;  // by tower
};

}  // namespace paceline
