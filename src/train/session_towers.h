// The towers of a session: devices that make each train step together, each on a thread of its own.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "params/towers/tower_store.h"
#include "params/towers/tower_threads.h"
#include "train/device_context.h"

namespace paceline {

/// Tower 0 is the session's own device; this class has what the other towers need. Between two
/// steps all towers rest, and only the session's thread uses the session's store and the contexts.
class SessionTowers {
 public:
  /// `pool` computes means. All parts must outlive the towers. The timeline may be null.
  struct Parts {
    ParameterStore& store;
    const Cluster& cluster;
    Clock& clock;
    ThreadPool& pool;
    Timeline* timeline = nullptr;
  };
  explicit SessionTowers(const Parts& parts);

  int count() const { return store_.towers(); }
  TowerStore& store() { return store_; }
  bool syncs_batch_norm() const { return parts_.cluster.train.sync_batch_norm; }
  /// Makes the contexts of the other towers, like that of tower 0.
  void make_contexts(const DeviceContext::Parts& first);
  /// Returns the context of a tower from 1 on.
  DeviceContext& context(int tower) { return others_.at(std::size_t(tower - 1))->context; }
  /// Calls work(tower) for all towers at once, and `meanwhile` on this thread; see
  /// TowerThreads::run.
  void run(TileFunction work, const std::function<void()>& meanwhile) {
    threads_.run(work, meanwhile);
  }

 private:
  struct Other {
    Other(const SessionTowers& towers, ParameterStore& store, int tower,
          const DeviceContext::Parts& first);
    std::unique_ptr<Device> device;
    StepAccount account, evaluation_account;
    DeviceContext context;
  };

  const Parts parts_;
  TowerStore store_;
  std::vector<std::unique_ptr<Other>> others_;
  TowerThreads threads_;
};

}  // namespace paceline
