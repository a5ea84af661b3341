// Tests that tasks of one host read values, and take contributions, in place in shared memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <numeric>

#include "params/local/local_store.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

class SharedJob : public JobFixture {
 protected:
  std::unique_ptr<PsStore> join(const std::vector<VariableSpec>& variables, bool share = true,
                                int worker = 0) {
    PsStoreOptions options = store_options(worker);
    options.share_memory = share;
    return PsStore::join(options, variables);
  }
  static std::int64_t bytes(const ParameterStore& store) {
    return store.account().bytes_sent + store.account().bytes_received;
  }
};

TEST_F(SharedJob, NoValueAndNoGradientGoesOverTheLink) {
  const std::vector<VariableSpec> variables = {
      {.name = "w", .shape = {601, 503}, .rule = Adam{}},
      {.name = "rows", .shape = {2000, 64}, .rule = Sgd{}, .sparse = true}};
  make_spec(1, 1);
  start_all_ps();
  const auto store = join(variables);
  store->write(initial_states(variables), 0);
  for (const bool clipped : {false, true}) {
    StepDriver driver(*store, clipped);
    driver.step();
    const std::int64_t before = bytes(*store);
    for (int i = 0; i < 10; ++i) driver.step();
    // These bytes are headers, learning rates, and at most 2,000 ids of rows.
    EXPECT_LT(bytes(*store) - before, 10 * (2000 * 4 + 1000));
  }
  store->goodbye();
}

// If the pieces of a variable cannot begin at pages, its values arrive in frames. Its contributions
// are still read where they lie.
TEST_F(SharedJob, OfASplitVariableOnlyValuesGoOverTheLink) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {600, 500}, .rule = Adam{}}};
  make_spec(2, 1);
  start_all_ps();
  const auto store = join(variables);
  store->write(initial_states(variables), 0);
  StepDriver driver(*store, false);
  driver.step();
  const StoreAccount before = store->account();
  for (int i = 0; i < 10; ++i) driver.step();
  EXPECT_LT(store->account().bytes_sent - before.bytes_sent, 10 * 1000);
  // The values of the last step may still be under way.
  EXPECT_GT(store->account().bytes_received - before.bytes_received, 8 * 600 * 500 * 4);
  store->goodbye();
}

// A variable that is cut between pages is still mapped as a whole.
TEST_F(SharedJob, OfAVariableThatIsSplitBetweenPagesNothingGoesOverTheLink) {
  const std::vector<VariableSpec> variables = {
      {.name = "w", .shape = {1000, 256}, .rule = Adam{}},
      {.name = "rows", .shape = {3000, 64}, .rule = Sgd{}, .sparse = true}};
  make_spec(3, 1);
  start_all_ps();
  const auto store = join(variables);
  EXPECT_GT(std::ranges::count(store->placement_text(), '\n'), 2) << store->placement_text();
  const auto local = make_local_store(variables, nullptr, nullptr);
  store->write(initial_states(variables), 0);
  local->write(initial_states(variables), 0);
  StepDriver far(*store, false), near(*local, false);
  far.step();
  near.step();
  const std::int64_t before = bytes(*store);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(far.step(), near.step());
  // These bytes are headers, and at most 3,000 ids of rows.
  EXPECT_LT(bytes(*store) - before, 10 * (3000 * 4 + 3000));
  EXPECT_EQ(everything(*store), everything(*local));
  store->goodbye();
}

TEST_F(SharedJob, AStepThatEvaluatesSeesWhatWasRead) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {7}, .rule = Sgd{}}};
  make_spec(1, 1);
  start_all_ps();
  const auto store = join(variables);
  store->write(initial_states(variables), 0);
  StepDriver driver(*store, false);
  driver.step();
  const auto read = everything(*store)[0];
  const auto evaluation = store->bind({.uses = {{.variable = 0}}}, 0);
  const std::vector<float> rates(1, 0.0f);
  evaluation->begin_step(StepKind::kEvaluate, {}, {.learning_rates = rates});
  const TensorView seen = evaluation->need(0).view;
  EXPECT_EQ(std::vector<float>(seen.as<float>(), seen.as<float>() + 7), read);
  driver.step();
  EXPECT_EQ(std::vector<float>(seen.as<float>(), seen.as<float>() + 7), read) << "a copy";
  store->goodbye();
}

// One worker alternates between a smaller plan and a larger one.
TEST_F(SharedJob, PlansOfAllSizesShareTheirContributions) {
  const std::vector<VariableSpec> variables = {
      {.name = "rows", .shape = {40, 3}, .rule = Add{}, .sparse = true}};
  make_spec(1, 1);
  start_all_ps();
  const auto store = join(variables);
  store->write({{{.variable = 0, .value = Tensor(DType::kFloat32, {40, 3}), .slots = {}}}}, 0);
  const auto work = [&](std::int64_t rows) {
    const auto steps =
        store->bind({.uses = {{.variable = 0, .updated = true, .most_rows = rows}}}, rows % 2 == 0);
    const std::vector<float> rates(1, 0.0f);
    std::vector<std::int32_t> ids(std::size_t(rows), 0);
    std::iota(ids.begin(), ids.end(), 0);
    for (int i = 0; i < 5; ++i) {
      steps->begin_step(StepKind::kTrain, {}, {.learning_rates = rates});
      std::fill_n(steps->place(0).view.as<float>(), 3 * rows, 1.0f);
      steps->ready(0, {.sparse = true, .ids = ids}, {});
      steps->end_step(1, {}).global_step();
    }
  };
  for (const int rows : {2, 40, 3, 40}) work(rows);
  const auto sum = everything(*store)[0];
  EXPECT_EQ(sum[0], 20.0f);
  EXPECT_EQ(sum[3 * 2], 15.0f);
  EXPECT_EQ(sum[3 * 3], 10.0f);
  store->goodbye();
}

// A variable that only one kernel reads is read in place; a variable that several kernels read is
// read in a copy.
TEST_F(SharedJob, WhatSeveralKernelsReadStaysAsItIsThroughAStep) {
  const std::vector<VariableSpec> variables = {{.name = "once", .shape = {600}, .rule = Add{}},
                                               {.name = "again", .shape = {600}, .rule = Add{}}};
  make_spec(1, 2);
  start_all_ps();
  auto joining = std::async(std::launch::async, [&] { return join(variables, true, 1); });
  const auto store = join(variables);
  const auto other = joining.get();
  store->write(initial_states(variables), 0);
  other->wait_initialised();
  const auto steps = store->bind({.uses = {{.variable = 0}, {.variable = 1, .reread = true}}}, 0);
  const std::vector<float> rates(2, 0.0f);
  for (int i = 0; i < 3; ++i) {
    steps->begin_step(StepKind::kTrain, {}, {.learning_rates = rates});
    const float* const once = steps->need(0).view.as<float>();
    const float* const again = steps->need(1).view.as<float>();
    const float once_before = once[599], again_before = again[599];
    StepDriver(*other, false).step();  // its contributions have been applied
    EXPECT_NE(once[599], once_before);
    EXPECT_EQ(again[599], again_before);
    steps->end_step(1, {}).global_step();
    steps->begin_step(StepKind::kTrain, {}, {.learning_rates = rates});
    EXPECT_NE(steps->need(1).view.as<float>()[599], again_before) << "what was changed is not seen";
    steps->end_step(1, {}).global_step();
  }
  store->goodbye();
  other->goodbye();
}

// Two workers alternate, one step each. In frames, the answer to a contribution brings the values
// that the contribution makes. So the result must equal that of copies that each contribution
// renews.
class TwoWorkers : public SharedJob {
 public:
  struct Ended {
    std::vector<std::vector<float>> everything;
    std::int64_t bytes_a_step = 0;  // of the first worker
  };
  Ended run(const std::vector<VariableSpec>& variables, int num_ps, bool share, bool clipped) {
    constexpr int kSteps = 6;
    make_spec(num_ps, 2);
    start_all_ps();
    auto joining = std::async(std::launch::async, [&] { return join(variables, share, 1); });
    const auto first = join(variables, share);
    const auto second = joining.get();
    first->write(initial_states(variables), 0);
    second->wait_initialised();
    StepDriver one(*first, clipped, true), other(*second, clipped, true);
    one.knows_next_rows = other.knows_next_rows = false;
    one.step();
    one.wait_applied();
    const std::int64_t before = bytes(*first);
    for (int i = 0; i < kSteps; ++i) {
      for (StepDriver* driver : {&other, &one}) {
        driver->step();
        driver->wait_applied();
      }
    }
    Ended ended{{}, (bytes(*first) - before) / kSteps};
    ended.everything = everything(*first);
    first->goodbye();
    second->goodbye();
    return ended;
  }

 private:
  void TestBody() override {}  // lets a test make this job itself
};

void expect_as_in_frames(const std::vector<VariableSpec>& variables, int num_ps) {
  for (const bool clipped : {false, true}) {
    const auto copies = TwoWorkers().run(variables, num_ps, true, clipped);
    const auto frames = TwoWorkers().run(variables, num_ps, false, clipped);
    EXPECT_EQ(copies.everything, frames.everything) << (clipped ? "clipped" : "not clipped");
    EXPECT_LT(copies.bytes_a_step, 1000 * num_ps) << "values went over the link";
    EXPECT_GT(frames.bytes_a_step, 1000 * num_ps);
  }
}

TEST(CopyByPs, IsWhatTheWorkersOwnContributionMade) {
  expect_as_in_frames({{.name = "w", .shape = {601, 503}, .rule = Adam{}},
                       {.name = "b", .shape = {7}, .rule = Momentum{}}},
                      1);
}

TEST(CopyByPs, OfALargeVariableGoesPastTheCaches) {
  expect_as_in_frames({{.name = "w", .shape = {1103, 1021}, .rule = Add{}}}, 1);
}

TEST(CopyByPs, OfAVariableThatIsSplitBetweenPagesIsWhole) {
  expect_as_in_frames({{.name = "w", .shape = {1000, 256}, .rule = Adam{}}}, 2);
}

TEST(CopyByPs, OfRowsIsRenewedBeforeEachStep) {
  expect_as_in_frames({{.name = "rows", .shape = {100, 3}, .rule = Adam{}, .sparse = true}}, 1);
}

// The second plan's contributions do not renew the copy that the first plan reads.
TEST_F(SharedJob, AStepInACopySeesWhatStepsInPlaceMade) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {600}, .rule = Add{}}};
  make_spec(1, 2);
  start_all_ps();
  const auto stores = join_all(variables);
  const auto& store = stores.front();
  store->write(initial_states(variables), 0);
  StepDriver in_copy(*store, false, true), in_place(*store, false);
  const auto steps = store->bind({.uses = {{.variable = 0, .updated = true, .reread = true}}}, 0);
  const std::vector<float> rates(1, 0.0f);
  for (const StepKind kind : {StepKind::kTrain, StepKind::kFetch}) {
    for (StepDriver* driver : {&in_copy, &in_place}) {
      driver->step();
      const float now = everything(*store)[0][599];
      steps->begin_step(kind, {}, {.learning_rates = rates});
      EXPECT_EQ(steps->need(0).view.as<float>()[599], now);
      steps->end_step(1, {}).global_step();
    }
  }
  for (const auto& joined : stores) joined->goodbye();
}

}  // namespace
}  // namespace paceline
