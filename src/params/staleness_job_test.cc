// Tests how stale contributions are counted in jobs of two workers. One of the workers is held
// within its step.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

std::vector<VariableSpec> stale_variables() {
  return {{.name = "w", .shape = {64, 8}},
          {.name = "rows", .shape = {50, 4}, .sparse = true},
          {.name = "frozen", .shape = {3}, .trained = false}};
}

/// A step that begins and ends when its caller says so.
class HeldStep {
 public:
  /// `reread`: several kernels of a step read the variable.
  explicit HeldStep(ParameterStore& store, bool reread = false)
      : steps_(store.bind({.uses = {{.variable = 0, .updated = true, .reread = reread}}}, 0)) {}
  void begin() {
    steps_->begin_step(StepKind::kTrain, {}, {.learning_rates = rates_, .examples = 1});
    steps_->need(0);
  }
  void end() {
    const TensorView place = steps_->place(0).view;
    std::fill_n(place.as<float>(), place.shape.elements(), 1.0f);
    steps_->ready(0, {}, {});
    steps_->end_step(1, {}).global_step();
  }
  void fetch() {
    steps_->begin_step(StepKind::kFetch, {}, {.learning_rates = rates_});
    steps_->need(0);
    steps_->end_step(1, {});
  }
  void make() {
    begin();
    end();
  }

 private:
  const std::vector<float> rates_ = std::vector<float>(stale_variables().size(), 0.1f);
  const std::unique_ptr<StoreSteps> steps_;
};

class StalenessJob : public JobFixture {
 protected:
  /// `share`: the workers read values in memory of the ps.
  void start(int workers, bool share) {
    make_spec(1, workers);
    start_all_ps();
    for (int worker = 0; worker < workers; ++worker) stores_.push_back(join(worker, share));
    stores_[0]->write(initial_states(stale_variables()), 0);
    for (const auto& store : stores_) store->wait_initialised();
  }
  ~StalenessJob() override {
    for (const auto& store : stores_) store->goodbye();
  }
  ParameterStore& store(int worker) { return *stores_[std::size_t(worker)]; }
  /// Returns the staleness of the worker's contributions so far, summed.
  std::int64_t updates(int worker) { return store(worker).staleness().updates; }
  void make_steps(int worker, int steps) {
    StepDriver driver(store(worker), false);
    for (int i = 0; i < steps; ++i) driver.step();
  }

 private:
  std::unique_ptr<PsStore> join(int worker, bool share) {
    PsStoreOptions options = store_options(worker);
    options.share_memory = share;
    return PsStore::join(options, stale_variables());
  }
  std::vector<std::unique_ptr<PsStore>> stores_;
};

TEST_F(StalenessJob, OneWorkerIsNeverStale) {
  start(1, false);
  make_steps(0, 20);
  EXPECT_EQ(store(0).staleness().contributions, 20);
  EXPECT_EQ(updates(0), 0);
  EXPECT_EQ(store(0).staleness().p95, 0);
}

TEST_F(StalenessJob, ValuesThatWereReadAnewAreNotStale) {
  start(2, false);
  HeldStep held(store(0));
  held.make();
  make_steps(1, 5);
  everything(store(0));
  held.make();
  EXPECT_EQ(updates(0), 0);
}

TEST_F(StalenessJob, AContributionIsAsStaleAsTheFirstOfTheStepsThatItIsTheMeanOf) {
  start(2, true);
  HeldStep held(store(0));
  held.make();
  held.fetch();
  make_steps(1, 5);
  held.make();
  EXPECT_EQ(updates(0), 5);
}

/// How a worker gets its values.
struct Reading {
  bool share, reread;
  int after_a_pause;  // the staleness of a step if the other worker makes 3 steps just before
};

class StalenessOfReading : public StalenessJob, public ::testing::WithParamInterface<Reading> {};

INSTANTIATE_TEST_SUITE_P(
    Readings, StalenessOfReading,
    ::testing::Values(Reading{.share = false, .reread = true, .after_a_pause = 3},
                      Reading{.share = true, .reread = true, .after_a_pause = 3},
                      Reading{.share = true, .reread = false, .after_a_pause = 0}),
    [](const auto& reading) {
      if (!reading.param.share) return "InFrames";
      return reading.param.reread ? "InACopy" : "InPlace";
    });

TEST_P(StalenessOfReading, UpdatesOfTheOtherWorkerAreCountedWhileOneIsHeldInItsStep) {
  start(2, GetParam().share);
  HeldStep held(store(0), GetParam().reread);
  held.make();
  held.begin();
  make_steps(1, 5);
  held.end();
  EXPECT_EQ(store(0).staleness().contributions, 2);
  EXPECT_EQ(updates(0), 5);
  EXPECT_EQ(store(0).staleness().p95, 5);
  EXPECT_EQ(store(1).staleness().contributions, 5);
  EXPECT_EQ(updates(1), 0) << "nobody made a step within its steps";
}

TEST_P(StalenessOfReading, ValuesThatLieInTheMemoryOfThePsAreReadWhenTheStepBegins) {
  start(2, GetParam().share);
  HeldStep held(store(0), GetParam().reread);
  held.make();
  make_steps(1, 3);
  held.make();
  EXPECT_EQ(updates(0), GetParam().after_a_pause);
}

}  // namespace
}  // namespace paceline
