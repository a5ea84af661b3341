#include "predict/simulation/simulated_tasks.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "params/hybrid/hybrid_steps.h"
#include "params/protocol/outer_turns.h"
#include "params/variable_arrays.h"
#include "predict/simulation/machine_share.h"
#include "predict/simulation/shared_variables.h"
#include "predict/simulation/simulated_job.h"
#include "predict/simulation/simulated_member.h"
#include "predict/simulation/simulated_ps.h"
#include "predict/simulation/simulated_store.h"
#include "predict/simulation/simulated_worker.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

// The store of a simulated worker that makes local steps: its own one, and now and then the
// exchange with the store that all workers share.

class SimulatedOuterStore : public SimulatedStore {
 public:
  /// `shared` are the variables of `below`, whose plans are the fragments of the schedule.
  /// Everything is borrowed.
  SimulatedOuterStore(SimulatedStore& inner, SimulatedStore& below, const SimulatedStep& shared,
                      const OuterSchedule& schedule, bool in_rounds, VirtualTime& time,
                      MachineShare& machine);

  bool may_begin(StepKind) override;
  void begin_step(StepKind kind, int plan) override { inner_.begin_step(kind, plan); }
  bool has(VariableId variable) const override { return inner_.has(variable); }
  void ready(VariableId variable, const Done& done) override { inner_.ready(variable, done); }
  /// Exchanges what is due.
  void end_step(const Done& done) override;
  bool answered() const override { return true; }
  std::int64_t global_step() const override { return schedule_.steps_of(turns_.rounds()); }

 private:
  /// A part of an exchange: it waits until it may begin, and calls back when it is done.
  struct Part {
    double SpentSeconds::*waits_as;
    std::function<bool()> may_begin;
    std::function<void(const Done&)> act;
  };
  void go_on();
  void plan_parts();
  void settle();
  void take_over(int fragment);
  void contribute(int fragment);
  void pass(VariableId variable, double passes, const Done& done);

  SimulatedStore &inner_, &below_;
  const SimulatedStep& shared_;
  const OuterSchedule& schedule_;
  VirtualTime& time_;
  MachineShare& machine_;
  OuterTurns turns_;
  std::deque<Part> parts_ = {};
  Done ended_ = {};
  bool begun_ = false, busy_ = false, going_ = false;
  TimePoint waits_since_{};
};

// Passes over the memory of a variable: a difference reads the common value and the copy and writes
// itself and the copy; taking over reads three and writes two.
constexpr double kDifferencePasses = 4, kTakeOverPasses = 5;

SimulatedOuterStore::SimulatedOuterStore(SimulatedStore& inner, SimulatedStore& below,
                                         const SimulatedStep& shared, const OuterSchedule& schedule,
                                         bool in_rounds, VirtualTime& time, MachineShare& machine)
    : inner_(inner),
      below_(below),
      shared_(shared),
      schedule_(schedule),
      time_(time),
      machine_(machine),
      turns_(schedule, 0, in_rounds ? std::nullopt : std::optional<std::int64_t>(0)) {
  const auto spent = [this](double SpentSeconds::*on, double seconds) {
    user().spent(on, seconds);
  };
  inner.set_user({.changed = [this] { user().changed(); }, .spent = spent});
  below.set_user({.changed =
                      [this] {
                        go_on();
                        user().changed();
                      },
                  .spent = spent});
}

// The first values are the common ones.
bool SimulatedOuterStore::may_begin(StepKind) {
  if (begun_) return true;
  for (int fragment = 0; fragment < schedule_.fragments(); ++fragment) {
    for (const VariableId v : schedule_.variables_of(fragment)) {
      if (!below_.has(v)) return false;
    }
  }
  return begun_ = below_.may_begin(StepKind::kFetch);
}

void SimulatedOuterStore::end_step(const Done& done) {
  ended_ = done;
  inner_.end_step([] {});
  turns_.step_made();
  go_on();
}

// What is done at once calls back into it, and only leaves busy_ false.
void SimulatedOuterStore::go_on() {
  if (std::exchange(going_, true)) return;
  while (ended_ != nullptr && !busy_) {
    if (parts_.empty()) plan_parts();
    if (parts_.empty()) {
      std::exchange(ended_, nullptr)();
      break;
    }
    const Part& next = parts_.front();
    if (!next.may_begin()) {
      if (waits_since_ == TimePoint{}) waits_since_ = time_.now();
      break;
    }
    if (waits_since_ != TimePoint{}) {
      const TimePoint since = std::exchange(waits_since_, TimePoint{});
      user().spent(next.waits_as, seconds_of(time_.now() - since));
    }
    busy_ = true;
    const auto act = next.act;
    parts_.pop_front();
    act([this] {
      busy_ = false;
      go_on();
    });
  }
  going_ = false;
}

void SimulatedOuterStore::plan_parts() {
  const auto act = turns_.next();
  if (!act) return;
  switch (act->kind) {
    case OuterTurns::Act::Kind::kSettle:
      return settle();
    case OuterTurns::Act::Kind::kTakeOver:
      return take_over(act->fragment);
    case OuterTurns::Act::Kind::kContribute:
      return contribute(act->fragment);
  }
}

void SimulatedOuterStore::settle() {
  parts_.push_back({&SpentSeconds::answer, [this] { return below_.answered(); },
                    [this](const Done& done) {
                      turns_.settled(below_.global_step());
                      done();
                    }});
}

void SimulatedOuterStore::take_over(int fragment) {
  for (const VariableId v : schedule_.variables_of(fragment)) {
    parts_.push_back({&SpentSeconds::values, [this, v] { return below_.has(v); },
                      [this, v](const Done& done) { pass(v, kTakeOverPasses, done); }});
  }
  parts_.push_back({&SpentSeconds::values, [] { return true; },
                    [this, fragment](const Done& done) {
                      turns_.took_over(fragment);
                      done();
                    }});
}

void SimulatedOuterStore::contribute(int fragment) {
  parts_.push_back({&SpentSeconds::others, [this] { return below_.may_begin(StepKind::kTrain); },
                    [this, fragment](const Done& done) {
                      below_.begin_step(StepKind::kTrain, fragment);
                      done();
                    }});
  const auto at_once = [] { return true; };
  for (const VariableId v : schedule_.variables_of(fragment)) {
    parts_.push_back({&SpentSeconds::others, at_once, [this, v](const Done& done) {
                        pass(v, kDifferencePasses, [this, v, done] { below_.ready(v, done); });
                      }});
  }
  parts_.push_back({&SpentSeconds::others, at_once, [this](const Done& done) {
                      below_.end_step([this, done] {
                        turns_.contributed();
                        done();
                      });
                    }});
}

void SimulatedOuterStore::pass(VariableId variable, double passes, const Done& done) {
  const VariableSpec& spec = shared_.specs[std::size_t(variable)];
  const TimePoint begun = time_.now();
  machine_.run({.rule_bytes = passes * double(byte_count(spec.dtype, spec.shape)),
                .threads = shared_.rule_threads},
               [this, begun, done] {
                 user().spent(&SpentSeconds::rules, seconds_of(time_.now() - begun));
                 done();
               });
}

// The store of a simulated worker that applies its own contributions to values of its own.

class SimulatedLocalStore : public SimulatedStore {
 public:
  /// Everything is borrowed.
  SimulatedLocalStore(const SimulatedStep& step, VirtualTime& time, MachineShare& machine)
      : step_(step), time_(time), machine_(machine) {}

  bool may_begin(StepKind) override { return true; }
  void begin_step(StepKind, int) override {}
  bool has(VariableId) const override { return true; }
  void ready(VariableId variable, const Done& done) override;
  void end_step(const Done& done) override { done(); }
  bool answered() const override { return true; }
  std::int64_t global_step() const override { return 0; }  // nobody asks

 private:
  const SimulatedStep& step_;
  VirtualTime& time_;
  MachineShare& machine_;
};

void SimulatedLocalStore::ready(VariableId variable, const Done& done) {
  const TimePoint begun = time_.now();
  machine_.run({.rule_bytes = step_.variables[std::size_t(variable)].rule_bytes,
                .threads = step_.rule_threads},
               [this, begun, done] {
                 user().spent(&SpentSeconds::rules, seconds_of(time_.now() - begun));
                 done();
               });
}

// The store of a simulated worker of `hybrid`: sparse variables on ps tasks, the others reduced
// among the workers, whose members commit the rounds of both.

class SimulatedHybridStore : public SimulatedStore {
 public:
  /// Everything is borrowed.
  SimulatedHybridStore(const HybridPlaces& places, SimulatedWorker& sparse, SimulatedMember& dense,
                       bool clipped);

  /// Before its first step a worker asks every ps whether the round is open.
  bool may_begin(StepKind kind) override;
  void begin_step(StepKind kind, int plan) override;
  bool has(VariableId variable) const override {
    return part(variable).has(places_.there(variable));
  }
  void ready(VariableId variable, const Done& done) override {
    part(variable).ready(places_.there(variable), done);
  }
  /// The dense part is committed once the sparse one is on every ps.
  void end_step(const Done& done) override;
  bool answered() const override { return sparse_.answered(); }
  std::int64_t global_step() const override { return sparse_.global_step(); }

 private:
  SimulatedStore& part(VariableId variable) const {
    return places_.is_sparse(variable) ? static_cast<SimulatedStore&>(sparse_) : dense_;
  }
  void look();
  void commit(const Done& apply);

  const HybridPlaces& places_;
  SimulatedWorker& sparse_;
  SimulatedMember& dense_;
  const bool clipped_;
  bool asked_ = false;
  bool awaits_receipt_ = false;
  Done apply_ = {};  // waits for the clip scale
};

SimulatedHybridStore::SimulatedHybridStore(const HybridPlaces& places, SimulatedWorker& sparse,
                                           SimulatedMember& dense, bool clipped)
    : places_(places), sparse_(sparse), dense_(dense), clipped_(clipped) {
  const User part{
      .changed =
          [this] {
            look();
            user().changed();
          },
      .spent = [this](double SpentSeconds::*on, double seconds) { user().spent(on, seconds); }};
  sparse.set_user(part);
  dense.set_user(part);
  dense.wait_for_receipts([this](const Done& apply) { commit(apply); });
}

bool SimulatedHybridStore::may_begin(StepKind kind) {
  if (!dense_.may_begin(kind) || !sparse_.may_begin(kind)) return false;
  if (!std::exchange(asked_, true)) sparse_.await_round(0);
  return sparse_.round_is_open();
}

void SimulatedHybridStore::begin_step(StepKind kind, int plan) {
  dense_.begin_step(kind, plan);
  sparse_.begin_step(kind, plan);
}

void SimulatedHybridStore::end_step(const Done& done) {
  sparse_.end_step([] {});
  awaits_receipt_ = true;
  dense_.end_step(done);
  look();
}

// The lowest of several members lets the others tell ps 0.
void SimulatedHybridStore::commit(const Done& apply) {
  if (dense_.contributors().size() == 1 || dense_.contributors().front() != sparse_.index()) {
    sparse_.commit(dense_.contributors());
  }
  if (!clipped_) return apply();
  apply_ = apply;
  look();
}

void SimulatedHybridStore::look() {
  if (awaits_receipt_ && sparse_.is_given()) {
    awaits_receipt_ = false;
    dense_.confirm_receipt();
  }
  if (apply_ != nullptr && sparse_.has_scale()) std::exchange(apply_, nullptr)();
}

// The mean of several steps of a simulated worker is one contribution to the store below.

class SimulatedAccumulation : public SimulatedStore {
 public:
  /// `below` is borrowed.
  SimulatedAccumulation(SimulatedStore& below, int steps) : below_(below), each_(steps) {
    below.set_user(
        {.changed = [this] { user().changed(); },
         .spent = [this](double SpentSeconds::*on, double seconds) { user().spent(on, seconds); }});
  }

  bool may_begin(StepKind) override { return below_.may_begin(kind()); }
  void begin_step(StepKind, int plan) override { below_.begin_step(kind(), plan); }
  bool has(VariableId variable) const override { return below_.has(variable); }
  void ready(VariableId variable, const Done& done) override {
    kind() == StepKind::kTrain ? below_.ready(variable, done) : done();
  }
  void end_step(const Done& done) override {
    const bool contributes = kind() == StepKind::kTrain;
    ++made_;
    contributes ? below_.end_step(done) : done();
  }
  bool answered() const override { return below_.answered(); }
  std::int64_t global_step() const override { return below_.global_step(); }

 private:
  StepKind kind() const { return made_ % each_ == each_ - 1 ? StepKind::kTrain : StepKind::kFetch; }

  SimulatedStore& below_;
  const std::int64_t each_;
  std::int64_t made_ = 0;
};

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
