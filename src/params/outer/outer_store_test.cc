// Tests of local steps with an outer rule, over a store of one process, over parameter servers and
// over an all-reduce.
#include "params/outer/outer_store.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <numeric>
#include <vector>

#include "base/testing/error_of.h"
#include "params/collective/collective_store.h"
#include "params/strategy/strategy_kind.h"
#include "params/testing/collective_fixture.h"
#include "params/testing/trainee.h"

namespace paceline {
namespace {

/// Options for which the outer rule just averages the workers' copies, after `local_steps` steps.
OuterOptions averaging(int local_steps, int fragments = 1) {
  return {.local_steps = local_steps, .rate = 1, .momentum = 0, .fragments = fragments};
}

JoinOptions of_worker(int worker) {
  JoinOptions options;
  options.cluster.task = {TaskId::Role::kWorker, worker};
  return options;
}

const LookupModel& part_model() {
  static const LookupModel model(16, Sgd{.learning_rate = 0.5f}, 0);
  return model;
}

JoinedStrategy over_one_process(const OuterOptions& how) {
  const std::vector<VariableSpec> specs = part_model().specs();
  JoinedStrategy below = joined_alone(outer_variables(specs, how));
  return with_outer_rule(std::move(below), specs, how, of_worker(0));
}

TEST(OuterStore, OneWorkerThatAveragesTrainsAsOneProcess) {
  for (const int fragments : {1, 2, 3}) {
    const JoinedStrategy alone = joined_alone(part_model().specs()),
                         local = over_one_process(averaging(4, fragments));
    Trainee one(*alone.store, part_model()), other(*local.store, part_model());
    for (int step = 0; step < 40; ++step) {
      const double loss = one.step();
      EXPECT_NEAR(other.step(), loss, 1e-5 * loss) << step;
    }
  }
}

TEST(OuterStore, TheOuterRuleIsNesterovsOverTheDifferencesOfRounds) {
  const OuterOptions how{.local_steps = 3, .rate = 0.7f, .momentum = 0.9f, .fragments = 1};
  const JoinedStrategy local = over_one_process(how);
  std::vector<float> w = everything(*local.store)[0], m(w.size(), 0.0f);
  Trainee trainee(*local.store, part_model());
  for (int round = 1; round <= 5; ++round) {
    const JoinedStrategy copy = joined_alone(part_model().specs());
    std::vector<VariableState> common_states = local.store->read(std::vector<VariableId>{0, 1, 2});
    for (VariableState& state : common_states) state.slots.clear();
    copy.store->write(std::move(common_states), 0);
    Trainee same(*copy.store, part_model(), nullptr, 3 * (round - 1));
    same.mean_of(3);
    const std::vector<float> after = everything(*copy.store)[0];
    trainee.mean_of(3);
    EXPECT_EQ(trainee.global_step(), 3 * round);
    EXPECT_EQ(local.store->global_step(), 3 * round);
    const std::vector<float> common = everything(*local.store)[0];
    for (std::size_t i = 0; i < w.size(); ++i) {
      const float difference = w[i] - after[i];
      m[i] = 0.9f * m[i] + difference;
      w[i] -= 0.7f * (difference + 0.9f * m[i]);
      EXPECT_NEAR(common[i], w[i], 1e-6) << round << " " << i;
    }
    w = common;
  }
}

TEST(OuterStore, CommonValuesAreThoseOfTheLastRound) {
  const JoinedStrategy local = over_one_process(averaging(4));
  const auto before = everything(*local.store);
  Trainee trainee(*local.store, part_model());
  trainee.mean_of(3);
  EXPECT_EQ(everything(*local.store), before);
  EXPECT_EQ(trainee.global_step(), 0);
  trainee.step();
  EXPECT_NE(everything(*local.store), before);
  EXPECT_EQ(trainee.global_step(), 4);
}

TEST(OuterStore, ASecondPlanThatTrainsIsRefused) {
  const JoinedStrategy local = over_one_process(averaging(4));
  const Trainee first(*local.store, part_model());
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument,
                     [&] { const Trainee second(*local.store, part_model()); })
                .find("trains one plan"),
            std::string::npos);
}

TEST(OuterStore, SlotsOfAWorkerGoIntoItsStateAndBack) {
  const LookupModel model(16, Adam{.learning_rate = 0.01f}, 0);
  const OuterOptions how = averaging(2);
  const auto made = [&] {
    JoinedStrategy below = joined_alone(outer_variables(model.specs(), how));
    return with_outer_rule(std::move(below), model.specs(), how, of_worker(0));
  };
  const JoinedStrategy unbroken = made(), begun = made(), resumed = made();
  Trainee one(*unbroken.store, model), first(*begun.store, model),
      second(*resumed.store, model, nullptr, 4);
  first.mean_of(4);
  TaskState state;
  state.step = 4;
  begun.control->add_own_state(state);
  EXPECT_EQ(state.local.front().name.substr(0, 6), "inner/");
  resumed.control->restore(std::vector{state});
  resumed.store->write(begun.store->read(std::vector<VariableId>{0, 1, 2}), 4);
  EXPECT_EQ(resumed.control->next_step(), 4);
  EXPECT_EQ(resumed.store->global_step(), 4);
  one.mean_of(4);
  for (int step = 0; step < 6; ++step) EXPECT_EQ(second.step(), one.step()) << step;
}

/// kWorkers workers train; their batches together are those of one process.
class OuterJob : public JobFixture, public ::testing::WithParamInterface<bool> {
 protected:
  void start(const OuterOptions& how) {
    make_spec(2, kWorkers);
    start_all_ps();
    const std::vector<VariableSpec> specs = part_model().specs(),
                                    below = outer_variables(specs, how);
    std::vector<std::future<std::shared_ptr<PsStore>>> joining;
    for (int i = 0; i < kWorkers; ++i) {
      PsStoreOptions options = store_options(i);
      options.aggregation = rounds_of(spec_, 0, LateContribution::kDrop);
      options.share_memory = GetParam();
      joining.push_back(std::async(std::launch::async, [options, below] {
        return std::shared_ptr<PsStore>(PsStore::join(options, below));
      }));
    }
    for (int i = 0; i < kWorkers; ++i) {
      const std::shared_ptr<PsStore> joined = joining[std::size_t(i)].get();
      workers_.push_back(with_outer_rule({joined, joined}, specs, how, of_worker(i)));
    }
    workers_[0].store->write(initial_states(below), 0);
  }
  /// The mean of the losses of all workers' steps, step by step.
  std::vector<double> train(int steps) {
    std::vector<std::future<std::vector<double>>> training;
    for (int i = 0; i < kWorkers; ++i) {
      training.push_back(std::async(std::launch::async, [&, i] {
        const JoinedStrategy& worker = workers_[std::size_t(i)];
        worker.control->wait_initialised();
        Trainee trainee(*worker.store, part_model(), nullptr, i, kWorkers);
        std::vector<double> losses;
        for (int step = 0; step < steps; ++step) losses.push_back(trainee.step());
        worker.control->set_done();
        EXPECT_EQ(worker.store->global_step(), steps);
        return losses;
      }));
    }
    std::vector<double> mean(std::size_t(steps), 0.0);
    for (auto& worker : training) {
      const std::vector<double> losses = worker.get();
      for (std::size_t i = 0; i < losses.size(); ++i) mean[i] += losses[i] / kWorkers;
    }
    for (const JoinedStrategy& worker : workers_) worker.control->goodbye();
    workers_.clear();
    return mean;
  }
  static std::vector<double> alone(int steps) {
    const LookupModel whole(16 * kWorkers, Sgd{.learning_rate = 0.5f}, 0);
    const JoinedStrategy one = joined_alone(whole.specs());
    Trainee trainee(*one.store, whole);
    std::vector<double> losses;
    for (int step = 0; step < steps; ++step) losses.push_back(trainee.step());
    return losses;
  }
  static constexpr int kWorkers = 2;
  std::vector<JoinedStrategy> workers_;
};

TEST_P(OuterJob, AverageAfterEachStepIsTheMeanOfContributions) {
  start(averaging(1));
  const std::vector<double> one = alone(100), together = train(100);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(together[i], one[i], 1e-5) << i;
}

// Copies drift apart, so the losses are only near those of one process.
TEST_P(OuterJob, FragmentsGoByTurnsInRoundsOfAllWorkers) {
  start(averaging(6, 3));
  const auto at_end = [](const std::vector<double>& losses) {
    return std::accumulate(losses.end() - 20, losses.end(), 0.0) / 20;
  };
  const double one = at_end(alone(120)), together = at_end(train(120));
  EXPECT_NEAR(together, one, 0.2 * one);
  for (auto& ps : ps_tasks_) EXPECT_EQ(ps.get().applied, 60 * kWorkers);
}

INSTANTIATE_TEST_SUITE_P(Memory, OuterJob, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "shared" : "frames"; });

class OuterCollective : public CollectiveFixture {};

TEST_P(OuterCollective, AverageAfterEachStepIsTheMeanOfContributions) {
  make_spec(2);
  const OuterOptions how = averaging(1);
  const std::vector<VariableSpec> specs = part_model().specs();
  Stores stores = join_all(outer_variables(specs, how));
  std::vector<std::vector<double>> losses(2);
  each({0, 1}, [&](int i) {
    const std::shared_ptr<CollectiveStore> joined = std::move(stores[std::size_t(i)]);
    const JoinedStrategy worker = with_outer_rule({joined, joined}, specs, how, of_worker(i));
    Trainee trainee(*worker.store, part_model(), nullptr, i, 2);
    for (int step = 0; step < 50; ++step) losses[std::size_t(i)].push_back(trainee.step());
    worker.control->set_done();
    worker.control->goodbye();
  });
  const LookupModel whole(32, Sgd{.learning_rate = 0.5f}, 0);
  const JoinedStrategy one = joined_alone(whole.specs());
  Trainee trainee(*one.store, whole);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR((losses[0][i] + losses[1][i]) / 2, trainee.step(), 1e-5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, OuterCollective,
                         ::testing::Values(CollectiveWay{"shared", "inproc", true},
                                           CollectiveWay{"ring", "inproc", false}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace paceline
