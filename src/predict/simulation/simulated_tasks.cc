#include "predict/simulation/simulated_tasks.h"

#include <algorithm>
#include <utility>

#include "predict/simulation/shared_variables.h"
#include "predict/simulation/simulated_accumulation.h"
#include "predict/simulation/simulated_hybrid_store.h"
#include "predict/simulation/simulated_local_store.h"
#include "predict/simulation/simulated_outer_store.h"
#include "predict/simulation/simulated_ps.h"
#include "predict/simulation/simulated_worker.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

AggregationSpec aggregation_of(const SimulatedJob& job) {
  AggregationSpec spec = aggregation_of(kind_of(job), job.strategy, {});
  spec.num_ps = std::max(1, int(job.cluster.ps.size()));
  spec.coordinator = "ps:0";
  return spec;
}

}  // namespace

SimulatedTasks::SimulatedTasks(const SimulatedJob& job)
    : job_(job), time_(job.seed), transport_(time_, job.cluster, job.costs) {
  make_worlds();
  for (int worker = 0; worker < int(job.cluster.workers.size()); ++worker) {
    SimulatedStore* store = &store_of(worker);
    if (job.accumulate > 1) {
      stores_.push_back(std::make_unique<SimulatedAccumulation>(*store, job.accumulate));
      store = stores_.back().get();
    }
    threads_.push_back(std::make_unique<StepThread>(job, worker, *store, time_, transport_));
  }
  for (SimulatedWorld& world : worlds_) start_ps_job(world);
  for (const auto& member : members_) member->start();
  if (worlds_.empty()) {
    time_.after(Duration(0), [this] { threads_.front()->go_on(); });
  }
}

void SimulatedTasks::make_worlds() {
  const bool with_ps = !job_.cluster.ps.empty();
  const StrategyKind& kind = kind_of(job_);
  if (kind.splits_variables()) {
    places_.emplace(job_.step->specs);
    make_ps_job(share(part_of_step(*job_.step, *places_, true), aggregation_of(job_)));
    make_members(share(part_of_step(*job_.step, *places_, false), {}));
    return;
  }
  const bool local_steps = kind.makes_local_steps;
  if (!with_ps && !kind.reduces) return;
  SimulatedWorld& world = share(local_steps ? outer_step(job_) : *job_.step, aggregation_of(job_));
  if (local_steps) {
    schedule_.emplace(outer_schedule(job_));
    world.plans.clear();
    for (int fragment = 0; fragment < schedule_->fragments(); ++fragment) {
      const auto variables = schedule_->variables_of(fragment);
      world.plans.emplace_back(variables.begin(), variables.end());
    }
  }
  with_ps ? make_ps_job(world) : make_members(world);
}

std::vector<double> SimulatedTasks::applying() const {
  std::vector<double> seconds;
  for (const SimulatedWorld& world : worlds_) {
    for (const auto& ps : world.ps) seconds.push_back(ps->applying());
  }
  return seconds;
}

SimulatedWorld& SimulatedTasks::share(SimulatedStep step, const AggregationSpec& aggregation) {
  shared_.push_back(std::move(step));
  return worlds_.emplace_back(job_, shared_.back(), aggregation, time_, transport_);
}

void SimulatedTasks::make_ps_job(SimulatedWorld& world) {
  for (int i = 0; i < world.num_ps(); ++i) {
    world.ps.push_back(std::make_unique<SimulatedPs>(world, i));
  }
  for (int i = 0; i < world.num_workers(); ++i) {
    world.workers.push_back(std::make_unique<SimulatedWorker>(world, i));
  }
  for (const auto& worker : world.workers) worker->connect();
}

void SimulatedTasks::start_ps_job(SimulatedWorld& world) {
  for (const auto& ps : world.ps) ps->connect();
  for (const auto& worker : world.workers) {
    time_.after(delay(worker->index()), [it = worker.get()] { it->start(); });
  }
}

void SimulatedTasks::make_members(SimulatedWorld& world) {
  for (int i = 0; i < world.num_workers(); ++i) {
    members_.push_back(std::make_unique<SimulatedMember>(world, i, members_));
  }
  for (const auto& member : members_) member->connect();
}

// Workers never begin at one moment.
Duration SimulatedTasks::delay(int worker) {
  return span_of(1e-4 * worker + time_.uniform() * job_.step->seconds());
}

MachineShare& SimulatedTasks::machine_of(int worker) {
  return transport_.machine_of(job_.cluster.workers[std::size_t(worker)]);
}

SimulatedStore& SimulatedTasks::local_store(int worker) {
  stores_.push_back(std::make_unique<SimulatedLocalStore>(*job_.step, time_, machine_of(worker)));
  return *stores_.back();
}

SimulatedStore& SimulatedTasks::store_of(int worker) {
  if (worlds_.empty()) return local_store(worker);
  if (places_) {
    stores_.push_back(std::make_unique<SimulatedHybridStore>(
        *places_, *worlds_.front().workers[std::size_t(worker)], *members_[std::size_t(worker)],
        job_.step->clipped));
    return *stores_.back();
  }
  const auto w = std::size_t(worker);
  const auto& with_ps = worlds_.front().workers;
  SimulatedStore& shared =
      with_ps.empty() ? static_cast<SimulatedStore&>(*members_[w]) : *with_ps[w];
  if (!schedule_) return shared;
  SimulatedStore& own = local_store(worker);
  stores_.push_back(std::make_unique<SimulatedOuterStore>(
      own, shared, shared_.front(), *schedule_, worlds_.front().in_rounds() || !members_.empty(),
      time_, machine_of(worker)));
  return *stores_.back();
}

}  // namespace paceline
