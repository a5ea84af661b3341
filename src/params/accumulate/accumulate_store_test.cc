#include "params/accumulate/accumulate_store.h"

#include <gtest/gtest.h>

#include "params/accumulate/accumulate_control.h"
#include "params/testing/equal_batches.h"

namespace paceline {
namespace {

class Accumulated : public EqualBatches {};

TEST_P(Accumulated, FourBatchesOf32TrainAsOneOf128) {
  const std::shared_ptr<PsStore> joined = joined_store();
  const JoinedStrategy whole = joined_alone(specs_),
                       near = accumulate(joined_alone(specs_), 4, nullptr),
                       far = accumulate({joined, joined}, 4, nullptr);
  Trainee one(*whole.store, large_), here(*near.store, small_), there(*far.store, small_);
  for (int step = 1; step <= 20; ++step) {
    const double loss = one.step(), accumulated = here.mean_of(4);
    EXPECT_NEAR(accumulated, loss, 1e-5 * loss) << step;
    EXPECT_EQ(there.mean_of(4), accumulated) << step;
    EXPECT_EQ(here.global_step(), step);
    EXPECT_EQ(there.global_step(), step);
  }
  EXPECT_EQ(everything(*near.store), everything(*far.store));
  far.control->goodbye();
  for (auto& ps : ps_tasks_) EXPECT_EQ(ps.get().applied, 20);
}

INSTANTIATE_TEST_SUITE_P(Rules, Accumulated, ::testing::ValuesIn(equal_batches_cases()),
                         [](const auto& test) { return test.param.name; });

// The inner store computes the norm of its mean, so the outer store need not compute a norm.
TEST(AccumulateStore, OneOverAnotherIsOneOfTheirProduct) {
  const LookupModel model(8, Sgd{.learning_rate = 0.5f}, 0.05f);
  const JoinedStrategy twice = accumulate(accumulate(joined_alone(model.specs()), 2, nullptr), 2,
                                          nullptr),
                       once = accumulate(joined_alone(model.specs()), 4, nullptr);
  Trainee nested(*twice.store, model), flat(*once.store, model);
  for (int step = 1; step <= 10; ++step) {
    const double loss = flat.mean_of(4);
    EXPECT_NEAR(nested.mean_of(4), loss, 1e-5 * loss) << step;
    EXPECT_EQ(nested.global_step(), step);
  }
}

TEST(AccumulateStore, StepsBeforeTheLastOfAWindowChangeNothing) {
  const LookupModel model(8, Sgd{.learning_rate = 0.5f}, 0);
  const JoinedStrategy made = accumulate(joined_alone(model.specs()), 3, nullptr);
  const auto before = everything(*made.store);
  Trainee trainee(*made.store, model);
  for (int step = 0; step < 2; ++step) {
    trainee.step();
    EXPECT_EQ(trainee.global_step(), 0);
    EXPECT_EQ(everything(*made.store), before);
  }
  trainee.step();
  EXPECT_EQ(trainee.global_step(), 1);
  EXPECT_NE(everything(*made.store), before);
}

TEST(AccumulateStore, TrainingsThatTakeTurnsHaveWindowsOfTheirOwn) {
  const LookupModel model(8, Sgd{.learning_rate = 0.5f}, 0);
  const JoinedStrategy made = accumulate(joined_alone(model.specs()), 2, nullptr);
  Trainee one(*made.store, model), other(*made.store, model);
  one.step();
  other.step();
  EXPECT_EQ(made.store->global_step(), 0);
  one.step();
  EXPECT_EQ(made.store->global_step(), 1);
  other.step();
  EXPECT_EQ(made.store->global_step(), 2);
}

class ToldControl : public LocalControl {
 public:
  void send_state(const TaskState& state) override { told = state.step; }
  std::int64_t told = -1;
};

TaskState state_of_step(std::int64_t step) {
  return {.worker = 0, .step = step, .position = {}, .local = {}};
}

// Ten own steps are two windows of 4 and half of a third window. That third window is not complete,
// so it begins anew.
TEST(AccumulateControl, CountsOwnStepsAndTheJobBelowWholeWindows) {
  const auto below = std::make_shared<ToldControl>();
  AccumulateControl control(below, 4);
  const TaskState saved = state_of_step(10);
  control.restore({&saved, 1});
  EXPECT_EQ(below->next_step(), 2);
  EXPECT_EQ(control.next_step(), 8);
  EXPECT_EQ(control.restored()->step, 8);
  control.send_state(state_of_step(11));
  EXPECT_EQ(below->told, 2);
}

}  // namespace
}  // namespace paceline
