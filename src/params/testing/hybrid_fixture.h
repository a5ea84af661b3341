// For tests: workers whose sparse variables lie on ps tasks, and whose dense ones they reduce among
// themselves, as threads of this process.
#pragma once

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "params/collective/collective_store.h"
#include "params/hybrid/hybrid_store.h"
#include "params/testing/job_fixture.h"

namespace paceline {

/// One worker's stores.
struct HybridWorker {
  std::shared_ptr<PsStore> sparse;
  std::shared_ptr<CollectiveStore> dense;
  JoinedStrategy both;
  void goodbye() const { both.control->goodbye(); }
};

class HybridFixture : public JobFixture {
 protected:
  HybridWorker join(int worker, const std::vector<VariableSpec>& variables) {
    PsStoreOptions ps = store_options(worker);
    ps.share_memory = share_memory_;
    ps.aggregation = {.kind = AggregationKind::kRounds,
                      .num_ps = std::int32_t(spec_.ps.size()),
                      .coordinator = spec_.ps.size() > 1 ? spec_.ps.front() : "",
                      .workers_commit = true};
    HybridWorker made;
    made.sparse = PsStore::join(ps, part_of(variables, true));
    RoundFence& rounds = made.sparse->round_fence();
    CollectiveOptions group;
    group.spec = spec_;
    group.task = ps.task;
    group.cluster_id = ps.cluster_id;
    group.link_factory = ps.link_factory;
    group.share_memory = share_memory_;
    group.join_timeout = join_timeout_;
    group.rounds = &rounds;
    group.check_interrupt = [&rounds] { rounds.check(); };
    group.say = [this, worker](const std::string& line) {
      say("worker:" + std::to_string(worker) + ": " + line);
    };
    made.dense = CollectiveStore::join(group, part_of(variables, false));
    made.both = with_both({made.sparse, made.sparse}, {made.dense, made.dense}, rounds, variables);
    if (worker == 0 && !made.both.control->was_initialised()) {
      made.both.store->write(initial_states(variables), 0);
    } else {
      made.both.control->wait_initialised();
    }
    return made;
  }
  std::future<HybridWorker> join_later(int worker, const std::vector<VariableSpec>& variables) {
    return std::async(std::launch::async,
                      [this, worker, &variables] { return join(worker, variables); });
  }
  std::vector<HybridWorker> join_all(const std::vector<VariableSpec>& variables) {
    std::vector<std::future<HybridWorker>> joining;
    for (std::size_t w = 0; w < spec_.workers.size(); ++w) {
      joining.push_back(join_later(int(w), variables));
    }
    std::vector<HybridWorker> workers;
    workers.reserve(joining.size());
    for (auto& worker : joining) workers.push_back(worker.get());
    return workers;
  }
  /// Calls work(worker) for each of them at once, and returns when all have returned.
  static void each(const std::vector<int>& workers, const std::function<void(int)>& work) {
    std::vector<std::future<void>> all;
    all.reserve(workers.size());
    for (const int worker : workers) {
      all.push_back(std::async(std::launch::async, [&work, worker] { work(worker); }));
    }
    for (auto& one : all) one.get();
  }

  bool share_memory_ = true;
  Duration join_timeout_ = std::chrono::seconds(60);
};

}  // namespace paceline
