// The stores of towers: devices of one process that make each step together.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "exec/parameter_store.h"
#include "params/towers/tower_group.h"

namespace paceline {

/// Stands over any other store. Each tower has a store of its own, whose plans make their steps at
/// once, each on a thread of its own: all read the values of the store below, and the mean of their
/// contributions is one contribution to it, in one step of it.
/// - With clipping the mean is clipped by its norm (NormBy::kStore), unless the store below
///   computes one itself.
/// - A tower's step has the number of its batch: the task's own step times the number of towers,
///   plus its own index. The store below gets the task's own step, and the learning rates and the
///   examples of tower 0's request.
/// - The next batch's rows are not asked for ahead.
class TowerStore {
 public:
  /// `pool`, on which means are computed, may be null. It and `below` must outlive the store.
  /// With `sync_batch_norm`, steps have an exchange() with those of the other towers.
  TowerStore(ParameterStore& below, int towers, ThreadPool* pool, bool sync_batch_norm = false);
  ~TowerStore();
  TowerStore(const TowerStore&) = delete;
  TowerStore& operator=(const TowerStore&) = delete;

  int towers() const;
  /// Returns the store of one tower, from 0. The n-th plan with updates that it binds makes its
  /// steps with the n-th one of each other tower; all must be alike. Plans without updates are the
  /// tower's own; they, and all else that is asked of the store, have their time between two steps.
  ParameterStore& of(int tower);
  /// A tower cannot go on: every wait of the others ends with this error, or with an earlier one.
  /// Any thread may call it.
  void fail(const std::exception_ptr& error);
  /// Between two steps: returns the norm of the mean in the last step of the n-th plan with
  /// updates, if it is clipped and the store below does not compute the norm.
  std::optional<double> norm(std::size_t n) const;

 private:
  class OfTower;
  TowerGroup& group(std::size_t n, const PlanBinding& plan, float clip_norm);

  ParameterStore& below_;
  ThreadPool* const pool_;
  const bool sync_batch_norm_;
  mutable std::mutex mutex_;  // of groups_
  std::vector<std::unique_ptr<TowerGroup>> groups_;
  std::vector<std::unique_ptr<OfTower>> stores_;  // by tower
};

}  // namespace paceline
