// Tests whole jobs in one process. Sparse variables lie on ps tasks, and workers reduce the dense
// variables: each step counts for both, or for none.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "params/collective/collective_store.h"
#include "params/hybrid/hybrid_store.h"
#include "params/testing/job_fixture.h"
#include "params/testing/trainee.h"

namespace paceline {
namespace {

/// One worker's stores.
struct HybridWorker {
  std::shared_ptr<PsStore> sparse;
  std::shared_ptr<CollectiveStore> dense;
  JoinedStrategy both;
  void goodbye() const { both.control->goodbye(); }
};

/// Workers are threads of this process. Their sparse variables lie on ps tasks; they reduce the
/// dense ones among themselves.
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
  /// Calls work(worker) for each worker at once, and returns when all calls have returned.
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

struct HybridCase {
  std::string name;
  int num_ps, workers;
  float clip_norm;
  bool share_memory;
};
std::ostream& operator<<(std::ostream& out, const HybridCase& test) { return out << test.name; }

class HybridJobs : public HybridFixture, public ::testing::WithParamInterface<HybridCase> {};

INSTANTIATE_TEST_SUITE_P(Cases, HybridJobs,
                         ::testing::Values(HybridCase{"Shared", 1, 2, 0, true},
                                           HybridCase{"SharedClipped", 1, 2, .05f, true},
                                           HybridCase{"Frames", 1, 3, 0, false},
                                           HybridCase{"FramesOfTwoPsClipped", 2, 3, .05f, false}),
                         [](const auto& one) { return one.param.name; });

TEST_P(HybridJobs, PartsOfABatchMakeTheStepsOfTheWholeBatch) {
  constexpr int kRows = 24, kSteps = 30;
  const auto [name, num_ps, workers, clip_norm, share_memory] = GetParam();
  share_memory_ = share_memory;
  const LookupModel part(kRows, Adam{.learning_rate = 0.02f}, clip_norm);
  const LookupModel whole(kRows * workers, Adam{.learning_rate = 0.02f}, clip_norm);
  const std::vector<VariableSpec> specs = part.specs();
  make_spec(num_ps, workers);
  start_all_ps();
  const std::vector<HybridWorker> joined = join_all(specs);
  std::vector<std::vector<double>> losses{std::size_t(workers), std::vector<double>(kSteps)};
  std::vector<int> all(std::size_t(workers), 0);
  std::iota(all.begin(), all.end(), 0);
  each(all, [&, workers = workers](int w) {
    Trainee trainee(*joined[std::size_t(w)].both.store, part, nullptr, w, workers);
    for (int step = 0; step < kSteps; ++step) {
      losses[std::size_t(w)][std::size_t(step)] = trainee.step();
      EXPECT_EQ(trainee.global_step(), step + 1);
    }
  });
  const JoinedStrategy alone = joined_alone(specs);
  Trainee of_whole(*alone.store, whole);
  double first = 0, last = 0;
  for (int step = 0; step < kSteps; ++step) {
    double mean = 0;
    for (const auto& of_worker : losses) mean += of_worker[std::size_t(step)] / workers;
    last = of_whole.step();
    if (step == 0) first = last;
    EXPECT_NEAR(mean, last, 1e-5) << step;
  }
  EXPECT_LT(last, first) << "it has learned";
  const auto expected = everything(*alone.store);
  for (const HybridWorker& worker : joined) {
    const auto actual = everything(*worker.both.store);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t a = 0; a < actual.size(); ++a) {
      for (std::size_t i = 0; i < actual[a].size(); ++i) {
        ASSERT_NEAR(actual[a][i], expected[a][i], 1e-5) << a << " " << i;
      }
    }
  }
  each(all, [&](int w) { joined[std::size_t(w)].goodbye(); });
}

const std::vector<VariableSpec> kHybridVariables = {
    {.name = "table", .shape = {6, 2}, .rule = Sgd{}, .sparse = true},
    {.name = "w", .shape = {300}, .rule = Sgd{}}};

// Contributes the same number to each element of both variables.
class EvenSteps {
 public:
  explicit EvenSteps(ParameterStore& store)
      : store_(store),
        steps_(store.bind({.uses = {{.variable = 0, .updated = true, .most_rows = 6},
                                    {.variable = 1, .updated = true}}},
                          0)) {}
  void begin() {
    const std::vector<RowSet> rows = {{0, ids_}};
    steps_->begin_step(StepKind::kTrain, rows,
                       {.learning_rates = rates_, .examples = 1, .step = step_++});
  }
  void contribute(VariableId variable, float number) {
    steps_->need(variable);
    const TensorView place = steps_->place(variable).view;
    std::fill_n(place.as<float>(), place.shape.elements(), number);
    const bool sparse = variable == 0;
    steps_->ready(
        variable,
        {.sparse = sparse,
         .ids = sparse ? std::span<const std::int32_t>(ids_) : std::span<const std::int32_t>()},
        {});
  }
  std::int64_t end() { return steps_->end_step(1, {}).global_step(); }
  std::int64_t step(float number) {
    begin();
    contribute(0, number);
    contribute(1, number);
    return end();
  }
  /// Returns by how much the variables differ from their initial values. The difference must be
  /// equal for all elements of both variables.
  float change() {
    const std::vector<VariableId> all = {0, 1};
    const std::vector<VariableState> now = store_.read(all);
    std::vector<float> changes;
    for (const VariableState& state : now) {
      const VariableState before =
          initial_state(kHybridVariables[std::size_t(state.variable)], state.variable);
      for (std::int64_t i = 0; i < state.value.elements(); ++i) {
        changes.push_back(before.value.data<float>()[std::size_t(i)] -
                          state.value.data<float>()[std::size_t(i)]);
      }
    }
    for (const float change : changes) EXPECT_NEAR(change, changes.front(), 1e-2);
    return changes.front();
  }

 private:
  ParameterStore& store_;
  const std::unique_ptr<StoreSteps> steps_;
  std::vector<std::int32_t> ids_ = {0, 1, 2, 3, 4, 5};
  std::vector<float> rates_ = {1, 1};
  std::int64_t step_ = 0;
};

class HybridJob : public HybridFixture {};

TEST_F(HybridJob, TheOthersGoOnWhenAWorkerLeaves) {
  make_spec(1, 3);
  start_all_ps();
  const std::vector<HybridWorker> workers = join_all(kHybridVariables);
  each({0, 1, 2}, [&](int w) {
    EvenSteps steps(*workers[std::size_t(w)].both.store);
    for (int step = 0; step < (w == 2 ? 3 : 8); ++step) {
      EXPECT_EQ(steps.step(float(w)), step + 1);
    }
    if (w == 2) workers[2].goodbye();
  });
  EXPECT_NEAR(EvenSteps(*workers[0].both.store).change(), 3 * 1 + 5 * 0.5f, 1e-4);
  EXPECT_NEAR(EvenSteps(*workers[1].both.store).change(), 3 * 1 + 5 * 0.5f, 1e-4);
  each({0, 1}, [&](int w) { workers[std::size_t(w)].goodbye(); });
}

// A worker dies after it has contributed to one part of the variables and before it contributes to
// the other.
class HybridLoss : public HybridFixture, public ::testing::WithParamInterface<VariableId> {};
INSTANTIATE_TEST_SUITE_P(Given, HybridLoss, ::testing::Values(0, 1));

TEST_P(HybridLoss, AStepThatNobodyHasCommittedCountsNowhere) {
  make_spec(1, 3);
  start_all_ps();
  std::vector<HybridWorker> workers = join_all(kHybridVariables);
  each({0, 1, 2}, [&](int w) {
    EvenSteps steps(*workers[std::size_t(w)].both.store);
    for (int step = 0; step < (w == 0 ? 2 : 6); ++step) steps.step(float(w));
    if (w != 0) return;
    steps.begin();
    steps.contribute(GetParam(), 1000);
    workers[0] = {};
  });
  EXPECT_NEAR(EvenSteps(*workers[1].both.store).change(), 2 * 1 + 4 * 1.5f, 1e-4);
  EXPECT_NEAR(EvenSteps(*workers[2].both.store).change(), 2 * 1 + 4 * 1.5f, 1e-4);
  EXPECT_TRUE(wait_said("worker:1: worker:0 is lost")) << said();
  each({1, 2}, [&](int w) { workers[std::size_t(w)].goodbye(); });
}

// Worker 0 begins the step and contributes nothing, as a worker does that has already noticed that
// its ps is lost. So the dense part never becomes whole.
TEST_F(HybridJob, AWorkerThatWaitsForOthersInAStepHearsThatThePsIsLost) {
  using namespace std::chrono_literals;
  reconnect_timeout_ = 100ms;
  make_spec(1, 2);
  start_all_ps();
  const std::vector<HybridWorker> workers = join_all(kHybridVariables);
  EvenSteps other(*workers[0].both.store), steps(*workers[1].both.store);
  each({0, 1}, [&](int w) { (w == 0 ? other : steps).begin(); });
  for (const VariableId variable : {0, 1}) steps.contribute(variable, 1);
  std::future<std::int64_t> end = std::async(std::launch::async, [&] { return steps.end(); });
  EXPECT_EQ(end.wait_for(300ms), std::future_status::timeout);
  stop_all_ps();
  ASSERT_EQ(end.wait_for(30s), std::future_status::ready);
  EXPECT_THROW(end.get(), Error);
}

TEST_F(HybridJob, AWorkerThatComesBackAsAnotherProcessGoesOnFromTheValuesOfBoth) {
  make_spec(2, 2);
  start_all_ps();
  std::vector<HybridWorker> workers = join_all(kHybridVariables);
  each({0, 1}, [&](int w) {
    EvenSteps steps(*workers[std::size_t(w)].both.store);
    for (int step = 0; step < (w == 0 ? 2 : 5); ++step) steps.step(2);
    if (w == 0) workers[0] = {};
  });
  std::future<HybridWorker> back = join_later(0, kHybridVariables);
  std::atomic<bool> over{false};
  std::future<void> other = std::async(std::launch::async, [&] {
    EvenSteps steps(*workers[1].both.store);
    while (!over) steps.step(2);
    EXPECT_NEAR(steps.change(), 2 * float(workers[1].both.store->global_step()), 1e-2);
  });
  workers[0] = back.get();
  EvenSteps steps(*workers[0].both.store);
  EXPECT_GT(steps.step(2), 5);
  std::int64_t last = 0;
  for (int step = 0; step < 5; ++step) last = steps.step(2);
  EXPECT_NEAR(steps.change(), 2 * float(last), 1e-2);
  over = true;
  workers[0].goodbye();  // the other worker may be in a step and wait for this worker
  other.get();
  workers[1].goodbye();
}

}  // namespace

}  // namespace paceline
