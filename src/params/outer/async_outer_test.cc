// Tests of local steps whose differences are applied as they arrive, in whole jobs in virtual time
// and in jobs with parameter servers.
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <memory>
#include <vector>

#include "base/virtual_time.h"
#include "params/outer/outer_exchange.h"
#include "params/outer/outer_store.h"
#include "params/testing/trainee.h"

namespace paceline {
namespace {

constexpr int kElements = 3;

/// Workers in virtual time, over one store. Each worker trains its copy towards a target of its
/// own. Workers die and join, and all go back to a checkpoint. The test computes the rule itself,
/// too, and compares the results.
class VirtualOuterJob {
 public:
  VirtualOuterJob(std::uint64_t seed, int workers)
      : time_(seed),
        how_{.local_steps = 1 + std::int64_t(seed % 5),
             .rate = 0.7f,
             .momentum = seed % 3 == 0 ? 0.0f : 0.8f,
             .delay = workers},
        specs_(outer_variables({{.name = "w", .shape = {kElements}, .rule = Sgd{}}}, how_)),
        schedule_(std::vector<std::int64_t>{kElements * 4}, how_.local_steps, 1),
        store_(make_local_store(specs_, nullptr, nullptr)) {
    store_->write({{.variable = 0, .value = Tensor(DType::kFloat32, {kElements}), .slots = {}}}, 0);
    saved_ = store_->read(all_);
    workers_.resize(std::size_t(workers));
    for (int worker = 0; worker < workers; ++worker) begin(worker);
  }

  /// Runs until this many contributions were made.
  void run(std::int64_t contributions) {
    time_.after(between(0.05, 0.2), [this] { save(); });
    time_.after(between(0.1, 0.4), [this] { lose_values(); });
    while (made_ < contributions && time_.run_one()) {
    }
  }
  std::vector<float> values() { return everything(*store_).front(); }
  std::int64_t made() const { return made_; }
  std::int64_t deaths() const { return deaths_; }
  std::int64_t restores() const { return restores_; }

 private:
  struct Worker {
    std::vector<float> copy;
    std::vector<double> began;  // the common values from which the copy began
    std::unique_ptr<OuterExchange> exchange;
    std::uint64_t process = 0;
    std::int64_t contributed = 0;
  };
  /// What the store should hold, as computed by the test itself.
  struct Account {
    std::vector<double> w = std::vector<double>(kElements), m = w, pending = w;
    std::int64_t count = 0;
  };

  Duration between(double least_s, double most_s) {
    return time_.between(Duration(std::int64_t(least_s * 1e9)),
                         Duration(std::int64_t(most_s * 1e9)));
  }

  void begin(int index) {
    Worker& worker = workers_[std::size_t(index)];
    ++worker.process;
    worker.copy = values();
    worker.began = account_.w;
    const TensorView view{worker.copy.data(), DType::kFloat32, {kElements}};
    worker.exchange = std::make_unique<OuterExchange>(
        *store_, schedule_, worker.contributed, std::vector{view},
        std::vector{specs_[0].rule.learning_rate()}, nullptr, nullptr);
    plan_step(index);
  }
  void plan_step(int index) {
    const std::uint64_t process = workers_[std::size_t(index)].process;
    time_.after(between(0.001 * (1 + index), 0.002 * (1 + index)), [this, index, process] {
      if (workers_[std::size_t(index)].process == process) step(index);
    });
  }
  void step(int index) {
    if (time_.happens(0.02)) return die(index);
    Worker& worker = workers_[std::size_t(index)];
    for (int i = 0; i < kElements; ++i) {
      float& element = worker.copy[std::size_t(i)];
      element += 0.1f * (float(index + i) - element);
    }
    const std::vector<float> copy = worker.copy;
    const std::int64_t before = store_->global_step();
    worker.exchange->step_made(1);
    if (store_->global_step() == before) return plan_step(index);
    EXPECT_EQ(store_->global_step(), before + 1);
    ++worker.contributed;
    ++made_;
    apply(worker, copy);
    plan_step(index);
  }
  void apply(Worker& worker, const std::vector<float>& copy) {
    const bool renews = ++account_.count % how_.delay == 0;
    for (std::size_t i = 0; i < kElements; ++i) {
      const double g = (worker.began[i] - double(copy[i])) / how_.delay;
      account_.pending[i] += g;
      double change = g;
      if (renews) {
        account_.m[i] = how_.momentum * account_.m[i] + account_.pending[i];
        account_.pending[i] = 0;
        change += how_.momentum * account_.m[i];
      }
      account_.w[i] -= how_.rate * change;
      EXPECT_NEAR(worker.copy[i], account_.w[i], 1e-3);
    }
    worker.began.assign(worker.copy.begin(), worker.copy.end());
  }
  // The worker loses the steps since its last contribution, and nothing else is lost.
  void die(int index) {
    ++deaths_;
    Worker& worker = workers_[std::size_t(index)];
    ++worker.process;
    worker.exchange.reset();
    time_.after(between(0.001, 0.05), [this, index] { begin(index); });
  }
  void save() {
    saved_ = store_->read(all_);
    saved_step_ = store_->global_step();
    saved_account_ = account_;
    time_.after(between(0.05, 0.2), [this] { save(); });
  }
  void lose_values() {
    ++restores_;
    for (Worker& worker : workers_) {
      ++worker.process;
      worker.exchange.reset();
    }
    store_ = make_local_store(specs_, nullptr, nullptr);
    store_->write(saved_, saved_step_);
    account_ = saved_account_;
    for (int worker = 0; worker < int(workers_.size()); ++worker) begin(worker);
    time_.after(between(0.1, 0.4), [this] { lose_values(); });
  }

  VirtualTime time_;
  const OuterOptions how_;
  const std::vector<VariableSpec> specs_;
  const OuterSchedule schedule_;
  const std::vector<VariableId> all_ = {0};
  std::unique_ptr<SavableStore> store_;
  std::vector<Worker> workers_;
  Account account_, saved_account_;
  std::vector<VariableState> saved_;
  std::int64_t saved_step_ = 0, made_ = 0, deaths_ = 0, restores_ = 0;
};

TEST(VirtualOuter, EachDifferenceCountsOnceWhoeverDiesJoinsOrIsRestored) {
  std::int64_t deaths = 0, restores = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const int workers = 1 + int(seed % 4);
    VirtualOuterJob job(seed, workers);
    job.run(200);
    EXPECT_EQ(job.made(), 200) << seed;
    if (::testing::Test::HasFailure()) return;
    for (int i = 0; i < kElements; ++i) {
      EXPECT_GT(job.values()[std::size_t(i)], -1.0f + float(i)) << seed;
      EXPECT_LT(job.values()[std::size_t(i)], float(i + workers)) << seed;
    }
    deaths += job.deaths();
    restores += job.restores();
  }
  EXPECT_GT(deaths, 1000);
  EXPECT_GT(restores, 200);
}

const LookupModel& shared_model() {
  static const LookupModel model(16, Sgd{.learning_rate = 0.5f}, 0);
  return model;
}

class AsyncOuterJob : public JobFixture, public ::testing::WithParamInterface<bool> {
 protected:
  void begin(const OuterOptions& how, int workers) {
    how_ = how;
    make_spec(2, workers);
    start_all_ps();
  }
  JoinedStrategy join(int worker) {
    PsStoreOptions options = store_options(worker);
    options.share_memory = GetParam();
    const std::vector<VariableSpec> specs = shared_model().specs();
    const std::shared_ptr<PsStore> joined = PsStore::join(options, outer_variables(specs, how_));
    JoinOptions of;
    of.cluster.task = {TaskId::Role::kWorker, worker};
    return with_outer_rule({joined, joined}, specs, how_, of);
  }
  void initialise(const JoinedStrategy& chief) {
    chief.store->write(initial_states(outer_variables(shared_model().specs(), how_)), 0);
  }
  /// Joins `count` workers at once. The first one initialises the variables.
  std::vector<JoinedStrategy> join_workers(int count) {
    std::vector<std::future<JoinedStrategy>> joining;
    joining.reserve(std::size_t(count));
    for (int worker = 0; worker < count; ++worker) {
      joining.push_back(std::async(std::launch::async, [this, worker] { return join(worker); }));
    }
    std::vector<JoinedStrategy> workers;
    workers.reserve(joining.size());
    for (auto& each : joining) workers.push_back(each.get());
    initialise(workers.front());
    return workers;
  }
  static void leave(JoinedStrategy& worker) {
    worker.control->set_done();
    worker.control->goodbye();
    worker = {};
  }
  OuterOptions how_;
};
INSTANTIATE_TEST_SUITE_P(Memory, AsyncOuterJob, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "shared" : "frames"; });

TEST_P(AsyncOuterJob, OneWorkerThatAveragesAfterEachStepTrainsAsOneProcess) {
  begin({.local_steps = 1, .rate = 1, .momentum = 0, .delay = 1}, 1);
  JoinedStrategy worker = join(0);
  initialise(worker);
  const JoinedStrategy alone = joined_alone(shared_model().specs());
  Trainee one(*alone.store, shared_model()), other(*worker.store, shared_model());
  for (int step = 0; step < 100; ++step) {
    const double loss = one.step();
    EXPECT_NEAR(other.step(), loss, 1e-5) << step;
    EXPECT_EQ(other.global_step(), step + 1);
  }
  leave(worker);
}

// The second worker makes no step while the first worker trains, and the first worker does not
// wait.
TEST_P(AsyncOuterJob, NobodyWaitsForAnybody) {
  begin({.local_steps = 4, .delay = 2}, 2);
  std::vector<JoinedStrategy> workers = join_workers(2);
  Trainee first(*workers[0].store, shared_model(), nullptr, 0, 2),
      second(*workers[1].store, shared_model(), nullptr, 1, 2);
  first.mean_of(20);
  EXPECT_EQ(workers[0].store->global_step(), 20);
  second.mean_of(8);
  EXPECT_EQ(second.global_step(), 28) << "steps of all workers together";
  const double before = first.mean_of(8);
  second.mean_of(40);
  EXPECT_LT(first.mean_of(40), before);
  for (JoinedStrategy& worker : workers) leave(worker);
  std::int64_t applied = 0;
  for (auto& ps : ps_tasks_) applied = ps.get().applied;
  EXPECT_EQ(applied, (68 + 48) / 4);
}

TEST_P(AsyncOuterJob, GoesOnWithoutALostWorkerAndTakesALateOne) {
  begin({.local_steps = 6, .fragments = 3, .delay = 2}, 2);
  std::vector<JoinedStrategy> workers = join_workers(2);
  auto first = std::make_unique<Trainee>(*workers[0].store, shared_model(), nullptr, 0, 2);
  auto second = std::make_unique<Trainee>(*workers[1].store, shared_model(), nullptr, 1, 2);
  const double before = first->mean_of(6);
  second->mean_of(9);
  second.reset();
  workers[1] = {};  // without a goodbye
  first->mean_of(12);
  workers[1] = join(1);
  second = std::make_unique<Trainee>(*workers[1].store, shared_model(), nullptr, 1, 2);
  std::thread trains([&] { second->mean_of(120); });
  first->mean_of(120);
  trains.join();
  EXPECT_LT(first->mean_of(6), before);
  workers[0].control->set_done();
  workers[1].control->set_done();
  EXPECT_GE(workers[0].store->global_step(), 240);
  for (JoinedStrategy& worker : workers) leave(worker);
}

}  // namespace
}  // namespace paceline
