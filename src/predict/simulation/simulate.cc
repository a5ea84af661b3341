#include "predict/simulation/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/virtual_time.h"
#include "paceline/error.h"
#include "params/hybrid/hybrid_steps.h"
#include "params/protocol/outer_schedule.h"
#include "params/protocol/outer_turns.h"
#include "params/variable_arrays.h"
#include "predict/simulation/machine_share.h"
#include "predict/simulation/shared_variables.h"
#include "predict/simulation/simulated_job.h"
#include "predict/simulation/simulated_member.h"
#include "predict/simulation/simulated_ps.h"
#include "predict/simulation/simulated_store.h"
#include "predict/simulation/simulated_worker.h"
#include "predict/simulation/simulated_world.h"
#include "predict/simulation/transport.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

/// The thread that makes a simulated worker's steps, one action after the other, and waits in
/// between. The worker's store decides how workers train together.
class StepThread {
 public:
  /// Borrows all its arguments.
  StepThread(const SimulatedJob& job, int index, SimulatedStore& store, VirtualTime& time,
             Transport& transport);
  StepThread(const StepThread&) = delete;
  StepThread& operator=(const StepThread&) = delete;

  /// Continues as far as the thread can. Call it whenever something that the thread waits for may
  /// have arrived.
  void go_on();
  /// The number of steps made, and the times at which the counted ones began and ended.
  std::int64_t steps() const { return steps_; }
  bool finished() const;
  TimePoint counted_from() const { return counted_from_; }
  TimePoint counted_to() const { return counted_to_; }
  /// Covers the counted steps.
  const SpentSeconds& spent() const { return spent_; }

 private:
  enum class Phase : std::uint8_t { kBegins, kActs, kEnds };
  bool step();
  bool begin();
  bool act();
  bool end();
  void run(const StepAction& action);
  void sum();
  bool wait(double SpentSeconds::*for_what);
  void stop_waiting();
  void spend(double SpentSeconds::*on, double seconds);
  void note_step();

  const SimulatedJob& job_;
  SimulatedStore& store_;
  VirtualTime& time_;
  MachineShare& machine_;
  const double slowness_;
  Phase phase_ = Phase::kBegins;
  std::size_t at_ = 0;
  bool busy_ = false, going_ = false;
  std::int64_t steps_ = 0;
  std::deque<const StepAction*> to_sum_;  // contributions of towers; the first is being summed
  double SpentSeconds::*waits_for_ = nullptr;
  TimePoint waits_since_{}, counted_from_{}, counted_to_{};
  SpentSeconds spent_;
};

/// The tasks of a simulated job, with their stores, ready to run.
class SimulatedTasks {
 public:
  /// `job` is borrowed. Throws kInvalidArgument for a strategy that the simulator does not know.
  explicit SimulatedTasks(const SimulatedJob& job);

  VirtualTime& time() { return time_; }
  const VirtualTime& time() const { return time_; }
  const Transport& transport() const { return transport_; }
  /// The threads that make steps, by worker.
  const std::vector<std::unique_ptr<StepThread>>& threads() const { return threads_; }
  /// The seconds in which each ps has applied rules, by ps.
  std::vector<double> applying() const;

 private:
  SimulatedWorld& share(SimulatedStep step, const AggregationSpec& aggregation);
  void make_worlds();
  void make_ps_job(SimulatedWorld& world);
  void make_members(SimulatedWorld& world);
  void start_ps_job(SimulatedWorld& world);
  SimulatedStore& local_store(int worker);
  SimulatedStore& store_of(int worker);
  MachineShare& machine_of(int worker);
  Duration delay(int worker);

  const SimulatedJob& job_;
  VirtualTime time_;
  Transport transport_;
  std::optional<OuterSchedule> schedule_;
  std::optional<HybridPlaces> places_;
  std::deque<SimulatedStep> shared_;  // the shared variables of each world
  std::deque<SimulatedWorld> worlds_;
  std::vector<std::unique_ptr<SimulatedMember>> members_;
  // The other stores: local ones, and those that stand over the stores of the worlds.
  std::vector<std::unique_ptr<SimulatedStore>> stores_;
  std::vector<std::unique_ptr<StepThread>> threads_;
};

StepThread::StepThread(const SimulatedJob& job, int index, SimulatedStore& store, VirtualTime& time,
                       Transport& transport)
    : job_(job),
      store_(store),
      time_(time),
      machine_(transport.machine_of(job.cluster.workers[std::size_t(index)])),
      slowness_(job.cluster.slowness_of(index)) {
  store.set_user(
      {.changed = [this] { go_on(); },
       .spent = [this](double SpentSeconds::*on, double seconds) { spend(on, seconds); }});
}

bool StepThread::finished() const { return steps_ >= job_.warm_steps + job_.steps; }

// An action that ends at once calls this function while it runs. That inner call returns at once,
// and the loop below goes on.
void StepThread::go_on() {
  if (std::exchange(going_, true)) return;
  while (!busy_ && step()) {
  }
  going_ = false;
}

// Returns false when the thread waits.
bool StepThread::step() {
  switch (phase_) {
    case Phase::kBegins:
      return begin();
    case Phase::kActs:
      return act();
    case Phase::kEnds:
      return end();
  }
  return false;
}

bool StepThread::begin() {
  if (!store_.may_begin(StepKind::kTrain)) return wait(&SpentSeconds::others);
  stop_waiting();
  if (steps_ == job_.warm_steps) counted_from_ = time_.now();
  phase_ = Phase::kActs;
  at_ = 0;
  busy_ = true;
  time_.after(span_of(job_.costs.step_s), [this] {
    const auto then = [this] {
      busy_ = false;
      store_.begin_step(StepKind::kTrain, 0);
      go_on();
    };
    const double input = job_.step->input_seconds;
    if (job_.step->towers == 1) return machine_.run({.core_seconds = input}, then);
    // While the kernels run, another thread makes the next batches of all towers.
    machine_.run({.core_seconds = input * job_.step->towers}, [] {});
    then();
  });
  return true;
}

bool StepThread::act() {
  if (at_ == job_.step->actions.size()) {
    if (!to_sum_.empty()) return wait(&SpentSeconds::rules);
    stop_waiting();
    phase_ = Phase::kEnds;
    busy_ = true;
    store_.end_step([this] {
      busy_ = false;
      go_on();
    });
    return true;
  }
  const StepAction& action = job_.step->actions[at_];
  if (action.kind == StepAction::Kind::kNeed) {
    if (!store_.has(action.variable)) return wait(&SpentSeconds::values);
    stop_waiting();
    ++at_;
    return true;
  }
  ++at_;
  run(action);
  return true;
}

bool StepThread::end() {
  if (!store_.answered()) return wait(&SpentSeconds::answer);
  stop_waiting();
  note_step();
  phase_ = Phase::kBegins;
  return true;
}

void StepThread::run(const StepAction& action) {
  busy_ = true;
  const TimePoint begun = time_.now();
  if (action.kind == StepAction::Kind::kReady && job_.step->towers > 1) {
    to_sum_.push_back(&action);
    busy_ = false;
    if (to_sum_.size() == 1) sum();
    return;
  }
  if (action.kind == StepAction::Kind::kReady) {
    return store_.ready(action.variable, [this] {
      busy_ = false;
      go_on();
    });
  }
  auto then = [this, begun] {
    spend(&SpentSeconds::device, seconds_of(time_.now() - begun));
    busy_ = false;
    go_on();
  };
  const int threads = job_.step->threads;
  const double seconds = slowness_ * action.seconds;
  if (threads == 0) return time_.after(span_of(seconds), std::move(then));
  const double on_cores = seconds * job_.step->busy;
  auto compute = [this, threads, on_cores, bytes = action.bytes, then = std::move(then)]() mutable {
    machine_.run({.core_seconds = on_cores * threads, .bytes = bytes, .threads = threads},
                 std::move(then));
  };
  if (on_cores == seconds) return compute();
  time_.after(span_of(seconds - on_cores), std::move(compute));
}

// Sums contributions of towers on the host, and hands them over one after the other, while the
// devices of the towers compute.
void StepThread::sum() {
  const StepAction& action = *to_sum_.front();
  machine_.run({.rule_bytes = job_.costs.bytes_to_sum(action.bytes, job_.step->towers),
                .threads = job_.step->rule_threads},
               [this, variable = action.variable] {
                 store_.ready(variable, [this] {
                   to_sum_.pop_front();
                   if (!to_sum_.empty()) return sum();
                   go_on();
                 });
               });
}

bool StepThread::wait(double SpentSeconds::*for_what) {
  if (waits_for_ != for_what) waits_since_ = time_.now();
  waits_for_ = for_what;
  return false;
}

void StepThread::stop_waiting() {
  if (waits_for_ == nullptr) return;
  spend(std::exchange(waits_for_, nullptr), seconds_of(time_.now() - waits_since_));
}

void StepThread::spend(double SpentSeconds::*on, double seconds) {
  if (steps_ >= job_.warm_steps && !finished()) spent_.*on += seconds;
}

void StepThread::note_step() {
  ++steps_;
  if (finished() && counted_to_ == TimePoint{}) counted_to_ = time_.now();
}

// The store of a simulated worker that makes local steps. It consists of the worker's own store and
// of periodic exchanges with the store that all workers share.

class SimulatedOuterStore : public SimulatedStore {
 public:
  /// `shared` describes the variables of `below`. The plans of `below` are the fragments of the
  /// schedule. Borrows all its arguments.
  SimulatedOuterStore(SimulatedStore& inner, SimulatedStore& below, const SimulatedStep& shared,
                      const OuterSchedule& schedule, bool in_rounds, VirtualTime& time,
                      MachineShare& machine);

  bool may_begin(StepKind) override;
  void begin_step(StepKind kind, int plan) override { inner_.begin_step(kind, plan); }
  bool has(VariableId variable) const override { return inner_.has(variable); }
  void ready(VariableId variable, const Done& done) override { inner_.ready(variable, done); }
  /// Starts the exchanges that are due.
  void end_step(const Done& done) override;
  bool answered() const override { return true; }
  std::int64_t global_step() const override { return schedule_.steps_of(turns_.rounds()); }

 private:
  /// A part of an exchange. It waits until may_begin() is true, and calls back when it is done.
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

// How often an exchange passes over the memory of a variable. Making a difference reads the common
// value and the copy, and writes both the copy and the difference; taking over reads three arrays
// and writes two.
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

// The first step waits for the common values, since every worker's own copy begins with them.
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

// A part that ends at once calls this function while it runs. That inner call returns at once, and
// the loop below goes on.
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
  /// Borrows all its arguments.
  SimulatedLocalStore(const SimulatedStep& step, VirtualTime& time, MachineShare& machine)
      : step_(step), time_(time), machine_(machine) {}

  bool may_begin(StepKind) override { return true; }
  void begin_step(StepKind, int) override {}
  bool has(VariableId) const override { return true; }
  void ready(VariableId variable, const Done& done) override;
  void end_step(const Done& done) override { done(); }
  bool answered() const override { return true; }
  std::int64_t global_step() const override { return 0; }  // nobody asks for it

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

// The store of a simulated worker of `hybrid`. Ps tasks hold the sparse variables, the workers
// reduce the other variables among themselves, and the workers commit the rounds of both parts.

class SimulatedHybridStore : public SimulatedStore {
 public:
  /// Borrows all its arguments.
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
  /// The member commits the dense part only once the sparse part has reached every ps.
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

// Tells ps 0 of the commit. If several members contribute, the lowest one leaves this to the
// others.
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

// Makes the mean of several steps of a simulated worker one contribution to the store below.

class SimulatedAccumulation : public SimulatedStore {
 public:
  /// Borrows `below`.
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

// Workers begin at different moments, as real workers do.
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

constexpr double kSecondsOfAYear = 365.25 * 24 * 3600;
constexpr double kLongest = 1e8;  // seconds: about three years

void check_strategy(const SimulatedJob& job) {
  const StrategyKind& kind = kind_of(job);
  if (kind.why_not_variables == nullptr) return;
  const std::string why = kind.why_not_variables(job.step->specs);
  if (why.empty()) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("--strategy {} {}", kind.name, why));
}

/// The amounts of the hosts' resources that the tasks have used up to some moment.
struct Used {
  TimePoint at{};
  std::vector<double> sent, received, carried, cores = {}, memory = {}, moved = {}, applying = {};
};

class Simulation {
 public:
  explicit Simulation(const SimulatedJob& job) : job_(job), tasks_(job) {}

  SimulatedSpeed run() {
    const auto warm = [&](const StepThread& thread) { return thread.steps() >= job_.warm_steps; };
    const auto done = [](const StepThread& thread) { return thread.finished(); };
    run_until(warm);
    const Used before = used();
    run_until(done);
    return speed(before, used());
  }

 private:
  template <typename Condition>
  void run_until(const Condition& holds) {
    constexpr std::uint64_t kEvery = 1024;  // events
    std::size_t first = 0;
    while (first < tasks_.threads().size()) {
      if (job_.gives_up && tasks_.time().events() % kEvery == 0 && job_.gives_up()) throw GivenUp();
      if (holds(*tasks_.threads()[first])) {
        ++first;
      } else if (tasks_.time().seconds() > kLongest) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("[predict] {} steps of each worker would take more than {:.0f} "
                                "years",
                                job_.warm_steps + job_.steps, kLongest / kSecondsOfAYear));
      } else if (!tasks_.time().run_one()) {
        throw Error(ErrorCode::kInternal, "[simulation] the steps are not made");
      }
    }
  }

  Used used() const {
    Used now{.at = tasks_.time().now(),
             .sent = tasks_.transport().network().sent(),
             .received = tasks_.transport().network().received(),
             .carried = tasks_.transport().network().carried(),
             .applying = tasks_.applying()};
    for (const auto& machine : tasks_.transport().machines()) {
      now.cores.push_back(machine->core_seconds());
      now.memory.push_back(machine->memory_seconds());
      now.moved.push_back(machine->bytes());
    }
    return now;
  }

  SimulatedSpeed speed(const Used& before, const Used& after) const {
    SimulatedSpeed speed{.events = tasks_.time().events()};
    double all = 0;
    for (const auto& thread : tasks_.threads()) {
      const double seconds = seconds_of(thread->counted_to() - thread->counted_from());
      speed.workers.push_back(double(job_.steps) / seconds);
      speed.steps_per_s += speed.workers.back();
      all += seconds;
      const SpentSeconds& spent = thread->spent();
      speed.use.device += spent.device;
      speed.use.rules += spent.rules;
      speed.use.values += spent.values;
      speed.use.answer += spent.answer;
      speed.use.others += spent.others;
    }
    for (double* each : {&speed.use.device, &speed.use.rules, &speed.use.values, &speed.use.answer,
                         &speed.use.others}) {
      *each /= all;
    }
    const double passed = seconds_of(after.at - before.at);
    const auto rates = [&](const std::vector<double>& from, const std::vector<double>& to) {
      std::vector<double> all_rates;
      for (std::size_t i = 0; i < to.size(); ++i) all_rates.push_back((to[i] - from[i]) / passed);
      return all_rates;
    };
    speed.use.sent = rates(before.sent, after.sent);
    speed.use.received = rates(before.received, after.received);
    speed.use.carried = rates(before.carried, after.carried);
    speed.use.cores = rates(before.cores, after.cores);
    speed.use.memory = rates(before.memory, after.memory);
    speed.use.moved = rates(before.moved, after.moved);
    speed.use.applying = rates(before.applying, after.applying);
    for (std::size_t i = 0; i < speed.use.cores.size(); ++i) {
      speed.use.cores[i] /= job_.cluster.machines[i].cores;
    }
    return speed;
  }

  const SimulatedJob& job_;
  SimulatedTasks tasks_;
};

}  // namespace

SimulatedSpeed simulate(const SimulatedJob& job) {
  check_strategy(job);
  return Simulation(job).run();
}

}  // namespace paceline
