// Tests steps that read values and contribute nothing: what these steps ask for, and what arrives
// without being asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "paceline/error.h"
#include "params/testing/job_fixture.h"
#include "params/worker/ps_store.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

struct How {
  bool share = false;
  DType wire = DType::kFloat32;
};

std::vector<VariableSpec> frozen_variables() {
  return {{.name = "w", .shape = {128, 256}, .trained = false}};
}

void add_one(std::int64_t, std::span<float> values) {
  for (float& value : values) ++value;
}

std::vector<VariableSpec> sums(std::int64_t elements) {
  return {{.name = "sum", .shape = {elements}, .rule = Add{}}};
}

std::vector<VariableState> zeros(const std::vector<VariableSpec>& variables) {
  std::vector<VariableState> states;
  states.reserve(variables.size());
  for (const VariableSpec& spec : variables)
    states.push_back({.variable = VariableId(states.size()),
                      .value = Tensor(spec.dtype, spec.shape),
                      .slots = {}});
  return states;
}

class FetchJob : public JobFixture {
 protected:
  std::unique_ptr<PsStore> join(const std::vector<VariableSpec>& variables, How how = {},
                                int worker = 0) {
    PsStoreOptions options = store_options(worker);
    options.share_memory = how.share;
    options.wire = how.wire;
    return PsStore::join(options, variables);
  }
  /// Joins two workers that share a sum, which begins at 0.
  void join_two(std::int64_t elements, How how = {}) {
    const std::vector<VariableSpec> variables = sums(elements);
    join_two(variables, how, zeros(variables));
  }
  void join_two(const std::vector<VariableSpec>& variables, How how,
                std::vector<VariableState> states) {
    auto joining =
        std::async(std::launch::async, [&] { return join(variables, {.share = true}, 1); });
    store_ = join(variables, how);
    other_ = joining.get();
    store_->write(std::move(states), 0);
    other_->wait_initialised();
  }
  void leave() {
    store_->goodbye();
    other_->goodbye();
  }
  static std::int64_t bytes(const ParameterStore& store) {
    return store.account().bytes_sent + store.account().bytes_received;
  }

  std::unique_ptr<PsStore> store_, other_;
};

class FetchSteps {
 public:
  /// `in_place` says that the store reads the value in the ps's memory, where it may change at any
  /// time.
  explicit FetchSteps(ParameterStore& store, bool in_place = false)
      : store_(store), in_place_(in_place), steps_(store.bind({.uses = {{.variable = 0}}}, 0)) {}
  /// Makes a step, in the middle of which it calls `meanwhile`. Returns the whole value.
  std::vector<float> values(const std::function<void()>& meanwhile = [] {}) {
    const std::vector<float> rates(store_.variables().size(), 0.0f);
    steps_->begin_step(StepKind::kFetch, {}, {.learning_rates = rates});
    const TensorView view = steps_->need(0).view;
    const std::span<const float> seen(view.as<float>(), std::size_t(view.shape.elements()));
    std::vector<float> at_first(seen.begin(), seen.end());
    meanwhile();
    EXPECT_TRUE(in_place_ || std::ranges::equal(seen, at_first))
        << "a value changes while kernels read it";
    steps_->end_step(1, {});
    return at_first;
  }
  float step() { return values().front(); }
  float step_until_not(float value) {
    const Deadline deadline = Deadline::after(60s);
    float now = step();
    while (now == value && !deadline.passed()) now = step();
    return now;
  }

 private:
  ParameterStore& store_;
  const bool in_place_;
  std::unique_ptr<StoreSteps> steps_;
};

/// Adds one to every element.
class AddingSteps {
 public:
  explicit AddingSteps(ParameterStore& store)
      : store_(store), steps_(store.bind({.uses = {{.variable = 0, .updated = true}}}, 0)) {}
  /// Makes a step, and returns when the ps has applied it.
  void step() {
    const std::vector<float> rates(store_.variables().size(), 0.0f);
    steps_->begin_step(StepKind::kTrain, {}, {.learning_rates = rates, .examples = 1, .step = 0});
    steps_->need(0);
    const TensorView place = steps_->place(0).view;
    std::fill_n(place.as<float>(), place.shape.elements(), 1.0f);
    steps_->ready(0, {}, {});
    steps_->end_step(1, {}).global_step();
  }

 private:
  ParameterStore& store_;
  std::unique_ptr<StoreSteps> steps_;
};

TEST_F(FetchJob, InSharedMemoryItReadsInPlaceAndThePsChangesTheValue) {
  const auto variables = frozen_variables();
  after_reads_ = {{"w", add_one}};
  make_spec(1, 1);
  start_all_ps();
  const auto store = join(variables, {.share = true});
  store->write(initial_states(variables), 0);
  FetchSteps fetch(*store, true);
  const float first = fetch.step();
  EXPECT_NE(fetch.step_until_not(first), first);
  const std::int64_t before = store->account().bytes_received;
  for (int i = 0; i < 5; ++i) fetch.step();
  // The message that the value has changed may still arrive, but no value.
  EXPECT_LT(store->account().bytes_received - before, 1000);
  store->goodbye();
}

TEST_F(FetchJob, EachStepSeesAllElementsChanged) {
  constexpr int kSteps = 6;
  const auto variables = frozen_variables();
  after_reads_ = {{"w", add_one}};
  make_spec(1, 1);
  start_all_ps();
  const auto store = join(variables);
  store->write(initial_states(variables), 0);
  FetchSteps fetch(*store);
  std::vector<float> before = fetch.values();
  const std::int64_t received = store->account().bytes_received;
  for (int i = 0; i < kSteps; ++i) {
    const std::vector<float> now = fetch.values();
    for (std::size_t j = 0; j < now.size(); ++j) ASSERT_NE(now[j], before[j]);
    before = now;
  }
  const auto bytes_of_value = std::int64_t(before.size() * sizeof(float));
  EXPECT_GE(store->account().bytes_received, received + (kSteps - 1) * bytes_of_value);
  store->goodbye();
}

TEST_F(FetchJob, OnlyReadsOfAStepChangeIt) {
  const auto variables = frozen_variables();
  after_reads_ = {{"w", add_one}};
  make_spec(1, 1);
  start_all_ps();
  const auto store = join(variables);
  store->write(initial_states(variables), 0);
  const float before = everything(*store)[0][0];
  EXPECT_EQ(everything(*store)[0][0], before) << "to be saved, and not to be trained with";
  FetchSteps fetch(*store);
  EXPECT_EQ(fetch.step(), before);
  EXPECT_GE(everything(*store)[0][0], before + 1);
  store->goodbye();
}

TEST_F(FetchJob, APsRefusesAJobWithoutWhatItIsToChange) {
  after_reads_ = {{"v", add_one}};
  make_spec(1, 1);
  start_all_ps();
  try {
    join(frozen_variables());
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("change variable v after each read"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(FetchJob, OfAConstantValueNothingIsAsked) {
  const auto variables = frozen_variables();
  make_spec(1, 2);
  start_all_ps();
  const auto chief = join(variables, {.share = true}, 0), framed = join(variables, {}, 1);
  chief->write(initial_states(variables), 0);
  framed->wait_initialised();
  for (const auto& store : {chief.get(), framed.get()}) {
    FetchSteps fetch(*store);
    const float first = fetch.step();
    const std::int64_t before = bytes(*store);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(fetch.step(), first);
    EXPECT_EQ(bytes(*store), before);
    store->goodbye();
  }
}

TEST_F(FetchJob, IsToldOfChanges) {
  make_spec(1, 2);
  start_all_ps();
  join_two(128);
  FetchSteps fetch(*store_);
  AddingSteps add(*other_);
  for (int sum = 0; sum < 5; ++sum) {
    EXPECT_EQ(fetch.step(), float(sum));
    add.step();
    EXPECT_EQ(fetch.step_until_not(float(sum)), float(sum + 1));
  }
  leave();
}

// The variable has two pieces. A reader may see the new values of one piece before those of the
// other.
TEST_F(FetchJob, IsToldOfChangesOfASplitVariable) {
  constexpr std::int64_t kElements = 600'000;
  make_spec(2, 2);
  start_all_ps();
  join_two(kElements);
  FetchSteps fetch(*store_);
  AddingSteps add(*other_);
  std::vector<float> value = fetch.values();
  for (int i = 1; i <= 3; ++i) {
    add.step();
    const std::vector<float> sum(kElements, float(i));
    const Deadline deadline = Deadline::after(60s);
    while (value != sum && !deadline.passed()) value = fetch.values();
    EXPECT_EQ(value, sum);
  }
  leave();
}

TEST_F(FetchJob, WhatHasChangedOnceIsSentAheadTheNextTime) {
  make_spec(1, 2);
  start_all_ps();
  std::vector<VariableSpec> variables = sums(128);
  variables.push_back({.name = "apart", .shape = {1}, .rule = Add{}});
  join_two(variables, {}, zeros(variables));
  FetchSteps fetch(*store_);
  AddingSteps add(*other_);
  const auto sent_until_changed = [&] {
    const float value = fetch.step();
    // When the ps answers this read, it has already handled the requests of the last step.
    store_->read(std::vector<VariableId>{1});
    const std::int64_t before = store_->account().bytes_sent;
    add.step();
    EXPECT_EQ(fetch.step_until_not(value), value + 1);
    return store_->account().bytes_sent - before;
  };
  constexpr std::int64_t kPiece = sizeof(std::uint32_t), kHeader = kFrameHeaderBytes;
  // Only a pull names pieces. Messages that ask ahead, and those that now and then confirm handled
  // messages, have the length of one header. So the bytes beside whole headers tell whether there
  // was a pull.
  EXPECT_EQ(sent_until_changed() % kHeader, kPiece) << "pulled, and asked for ahead";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sent_until_changed() % kHeader, 0) << "the next one again";
  leave();
}

TEST_F(FetchJob, AValueSentAheadThatIsNotTheNewestIsPulled) {
  make_spec(1, 2);
  start_all_ps();
  join_two(128);
  FetchSteps fetch(*store_);
  AddingSteps add(*other_);
  const float first = fetch.step();
  add.step();
  ASSERT_EQ(fetch.step_until_not(first), first + 1);
  add.step();
  add.step();
  everything(*other_);
  const Deadline deadline = Deadline::after(60s);
  float last = first + 1;
  while (last != first + 3 && !deadline.passed()) {
    const float now = fetch.step();
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_EQ(last, first + 3);
  leave();
}

// Each value that is read is whole, no value is older than the value before, and the last value is
// seen.
TEST_F(FetchJob, ValuesNeverGoBackWhileAnotherChangesThem) {
  constexpr int kChanges = 300;
  constexpr std::int64_t kElements = 20'000;
  make_spec(1, 2);
  start_all_ps();
  join_two(kElements);
  auto adding = std::async(std::launch::async, [&] {
    AddingSteps add(*other_);
    for (int i = 0; i < kChanges; ++i) add.step();
  });
  FetchSteps fetch(*store_);
  const Deadline deadline = Deadline::after(60s);
  float sum = 0;
  while (sum != kChanges && !deadline.passed()) {
    const std::vector<float> now = fetch.values([] { std::this_thread::yield(); });
    ASSERT_EQ(now, std::vector<float>(kElements, now.front()));
    ASSERT_GE(now.front(), sum);
    sum = now.front();
  }
  EXPECT_EQ(sum, kChanges);
  adding.get();
  leave();
}

// A value that was asked for ahead does not disturb the values that training brings.
TEST_F(FetchJob, SeesTheWorkersOwnSteps) {
  make_spec(1, 1);
  start_all_ps();
  const auto variables = sums(500);
  const auto store = join(variables);
  store->write(zeros(variables), 0);
  FetchSteps fetch(*store);
  AddingSteps add(*store);
  float value = fetch.step();
  for (int i = 0; i < 10; ++i) {
    add.step();
    if (i % 3 == 0) add.step();
    value += i % 3 == 0 ? 2 : 1;
    EXPECT_EQ(fetch.step(), value);
    EXPECT_EQ(fetch.step(), value);
  }
  store->goodbye();
}

TEST_F(FetchJob, ValuesSentAheadAreRoundedAsTheOthersAre) {
  make_spec(1, 2);
  start_all_ps();
  const auto variables = sums(100);
  join_two(variables, {.wire = DType::kBFloat16}, initial_states(variables));
  FetchSteps fetch(*store_);
  AddingSteps add(*other_);
  std::vector<float> value = fetch.values();
  for (int i = 0; i < 4; ++i) {
    add.step();
    fetch.step_until_not(value.front());
    value = fetch.values();
    const std::vector<float> exact = everything(*other_)[0];
    for (std::size_t j = 0; j < value.size(); ++j) {
      EXPECT_NEAR(value[j], exact[j], std::abs(exact[j]) / 256);
    }
  }
  leave();
}

}  // namespace
}  // namespace paceline
