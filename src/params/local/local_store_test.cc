#include "params/local/local_store.h"

#include <gtest/gtest.h>

#include "paceline/error.h"

namespace paceline {
namespace {

VariableSpec spec_of(const std::string& name, const Shape& shape, bool sparse = false) {
  VariableSpec spec;
  spec.name = name;
  spec.shape = shape;
  spec.rule = Sgd{};
  spec.sparse = sparse;
  return spec;
}

// Dense "w" (2) and sparse "e" (4, 1), both with SGD.
class LocalStoreTest : public testing::Test {
 protected:
  std::unique_ptr<ParameterStore> make(StepAccount* account = nullptr) {
    auto store =
        make_local_store({spec_of("w", {2}), spec_of("e", {4, 1}, true)}, nullptr, account);
    const std::vector<VariableState> states = {{0, Tensor::of<float>({2}, {1, 2}), {}},
                                               {1, Tensor::of<float>({4, 1}, {0, 1, 2, 3}), {}}};
    store->write(states, 7);
    return store;
  }
  static PlanBinding binding() { return {{{0, true, 0}, {1, true, 3}}}; }
  static std::vector<float> values(ParameterStore& store, VariableId id) {
    const Tensor value = store.read(std::vector<VariableId>{id})[0].value;
    return {value.data<float>().begin(), value.data<float>().end()};
  }
  void begin(StoreSteps& steps, StepKind kind = StepKind::kTrain) {
    steps.begin_step(kind, {}, {rates_, 1, 0});
  }
  static void contribute(StoreSteps& steps, float a, float b) {
    float* const place = steps.place(0).view.as<float>();
    place[0] = a;
    place[1] = b;
    steps.ready(0, {}, {});
  }
  const std::vector<float> rates_ = {1.0f, 0.5f};
};

TEST_F(LocalStoreTest, AppliesAContributionWhenItIsReady) {
  const auto store = make();
  const auto steps = store->bind(binding(), 0);
  begin(*steps);
  contribute(*steps, 0.5f, 1);
  EXPECT_EQ(values(*store, 0), (std::vector<float>{0.5f, 1}));
  EXPECT_EQ(*steps->need(0).view.as<float>(), 0.5f);
  EXPECT_EQ(steps->end_step(1, {}).global_step(), 8);
  EXPECT_EQ(store->global_step(), 8);
}

// A later step may hand its contribution over as a whole instead.
TEST_F(LocalStoreTest, AppliesAStreamedContributionRangeByRange) {
  const auto store = make();
  ASSERT_TRUE(store->takes_streams());
  const auto steps = store->bind({{{0, true, 0, true}}}, 0);
  EXPECT_THROW(steps->place(1), Error);
  begin(*steps);
  OutputSink& sink = steps->sink(0);
  const float second = 1, first = 0.5f;
  sink.take(1, {&second, 1});
  EXPECT_EQ(values(*store, 0), (std::vector<float>{1, 1}));
  sink.take(0, {&first, 1});
  steps->ready(0, {}, {});
  EXPECT_EQ(values(*store, 0), (std::vector<float>{0.5f, 1}));
  steps->end_step(1, {});
  begin(*steps);
  const TensorView place = steps->place(0).view;
  place.as<float>()[0] = place.as<float>()[1] = 0.25f;
  steps->ready(0, {}, {});
  EXPECT_EQ(values(*store, 0), (std::vector<float>{0.25f, 0.75f}));
}

TEST_F(LocalStoreTest, WithClippingItWaitsForTheScale) {
  const auto store = make();
  const auto steps = store->bind(binding(), 1.0f);
  begin(*steps);
  contribute(*steps, 1, 1);
  EXPECT_EQ(values(*store, 0), (std::vector<float>{1, 2}));
  steps->end_step(0.25f, {});
  EXPECT_EQ(values(*store, 0), (std::vector<float>{0.75f, 1.75f}));
  begin(*steps);
  steps->end_step(1, {});
  EXPECT_EQ(values(*store, 0), (std::vector<float>{0.75f, 1.75f}));
}

TEST_F(LocalStoreTest, AppliesRowsWithTheirOwnRate) {
  const auto store = make();
  for (const bool clipped : {false, true}) {
    const auto steps = store->bind(binding(), clipped ? 1.0f : 0.0f);
    begin(*steps);
    const TensorView place = steps->place(1).view;
    EXPECT_EQ(place.shape, (Shape{3, 1}));
    place.as<float>()[0] = 2;
    place.as<float>()[1] = 4;
    const std::int32_t ids[] = {1, 3};
    steps->ready(1, {true, ids}, {});
    steps->end_step(1, {});
  }
  EXPECT_EQ(values(*store, 1), (std::vector<float>{0, -1, 2, -1}));
}

TEST_F(LocalStoreTest, OnlyTrainStepsCount) {
  const auto store = make();
  const auto steps = store->bind({{{0, false, 0}}}, 0);
  for (const StepKind kind : {StepKind::kEvaluate, StepKind::kFetch}) {
    steps->begin_step(kind, {}, {});
    EXPECT_EQ(steps->need(0).view.shape, Shape{2});
    EXPECT_EQ(steps->end_step(1, {}).global_step(), 7);
  }
}

TEST_F(LocalStoreTest, StepsOfSeveralPlansShareValues) {
  const auto store = make();
  const auto train = store->bind(binding(), 0);
  const auto evaluation = store->bind({{{0, false, 0}}}, 0);
  begin(*train);
  contribute(*train, 1, 1);
  train->end_step(1, {});
  begin(*evaluation, StepKind::kEvaluate);
  EXPECT_EQ(*evaluation->need(0).view.as<float>(), 0);
}

TEST_F(LocalStoreTest, ApplyingIsTakenOutOfPush) {
  ManualClock clock;
  StepAccount account(clock);
  const auto store = make(&account);
  const auto steps = store->bind(binding(), 0);
  begin(*steps);
  const AccountScope push(account, Activity::kPush);
  contribute(*steps, 1, 1);
  // The clock stands still while the rule runs. The test checks that the time after the rule counts
  // as `push` again.
  clock.advance(std::chrono::milliseconds(2));
  EXPECT_EQ(account.change_to(Activity::kOther), Activity::kPush);
  EXPECT_EQ(account.spent(Activity::kPush), std::chrono::milliseconds(2));
}

TEST_F(LocalStoreTest, RefusesToBeReadBeforeItWasWritten) {
  const auto store = make_local_store({spec_of("w", {2})}, nullptr, nullptr);
  EXPECT_FALSE(store->initialised());
  const auto steps = store->bind({{{0, false, 0}}}, 0);
  steps->begin_step(StepKind::kEvaluate, {}, {});
  EXPECT_THROW(steps->need(0), Error);
  const std::vector<VariableState> states = {{0, Tensor(DType::kFloat32, {2}), {}}};
  store->write(states, 0);
  EXPECT_TRUE(store->initialised());
  EXPECT_NO_THROW(steps->need(0));
}

TEST_F(LocalStoreTest, RefusesPlansAndNamesThatCannotBe) {
  VariableSpec frozen = spec_of("w", {2});
  frozen.trained = false;
  const auto store = make_local_store({frozen}, nullptr, nullptr);
  EXPECT_THROW(store->bind({{{0, true, 0}}}, 0), Error);
  EXPECT_THROW(make_local_store({frozen, frozen}, nullptr, nullptr), Error);
  const auto steps = store->bind({{{0, false, 0}}}, 0);
  EXPECT_THROW(steps->place(0), Error);
  EXPECT_THROW(begin(*steps), Error);  // two rates for one variable
}

}  // namespace
}  // namespace paceline
