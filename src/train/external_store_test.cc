// A store for models that other code computes: in one process it trains as a graph does, bit for
// bit.
#include "paceline/external_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoints.h"
#include "net/shm/unix_socket.h"
#include "paceline/error.h"
#include "paceline/hooks.h"
#include "run/program_run.h"
#include "train/copies_at_once.h"
#include "train/external_board.h"
#include "train/planned_only.h"
#include "train/session_inside.h"
#include "train/testing/external_trainee.h"
#include "train/testing/quiet.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;

Cluster exact_alone() {
  Cluster cluster;
  cluster.threads = 1;
  cluster.device.kind = "naive";
  return cluster;
}

std::vector<Tensor> values_of(Session& session) {
  std::vector<Tensor> values;
  SessionInside(session).see_variables(
      [&](const std::string&, const Tensor& value) { values.push_back(value.clone()); });
  return values;
}

std::vector<Tensor> values_of(ExternalStore& store) {
  std::vector<Tensor> values;
  store.with_session([&](Session& session) { values = values_of(session); });
  return values;
}

void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t v = 0; v < got.size(); ++v) {
    const auto a = got[v].data<float>(), b = wanted[v].data<float>();
    EXPECT_TRUE(std::ranges::equal(a, b)) << "variable " << v;
  }
}

template <typename F>
std::string error_of(F&& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "it threw nothing";
  return "";
}

struct HowTrained {
  const char* name;
  Rule rule;
  MinimizeOptions options;
  bool table;
  int accumulate = 1;
};
void PrintTo(const HowTrained& how, std::ostream* out) { *out << how.name; }

class ExternalStoreAlone : public ::testing::TestWithParam<HowTrained> {};
INSTANTIATE_TEST_SUITE_P(
    Rules, ExternalStoreAlone,
    ::testing::Values(
        HowTrained{"sgd", Sgd{.learning_rate = 0.1f}, {}, false},
        HowTrained{"adam_clipped", Adam{.learning_rate = 0.01f}, {.clip_norm = 0.3f}, false},
        HowTrained{"rows", Adagrad{.learning_rate = 0.1f}, {}, true},
        HowTrained{"rows_clipped", Momentum{.learning_rate = 0.1f}, {.clip_norm = 0.3f}, true},
        HowTrained{"by_value", Sgd{.learning_rate = 0.1f}, {.clip_value = 0.01f}, true},
        HowTrained{"groups",
                   Sgd{.learning_rate = 0.1f},
                   {.learning_rate = Schedule::exponential(0.5, 5),
                    .groups = {{.prefix = "hidden", .rule = Adam{}, .average_decay = 0.9f}}},
                   false},
        HowTrained{"accumulated", Momentum{.learning_rate = 0.1f}, {.clip_norm = 0.3f}, true, 3}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_P(ExternalStoreAlone, TrainsAsAGraphDoes) {
  const HowTrained& how = GetParam();
  constexpr std::int64_t kSteps = 12;
  Cluster cluster = exact_alone();
  cluster.train.accumulate = how.accumulate;
  ExternalTrainee model(how.table);
  std::vector<double> wanted;
  Session session(minimize(model.loss, how.rule, how.options), cluster, quiet());
  for (std::int64_t i = 0; i < kSteps; ++i) {
    wanted.push_back(session.step([&](Feed& feed) { model.fill(feed); })->loss);
  }
  ExternalStore store(model.variables(), how.rule, cluster, quiet(), {.minimize = how.options});
  EXPECT_EQ(model.train(store, 0, kSteps), wanted);
  EXPECT_LT(wanted.back(), wanted.front());
  expect_same(values_of(store), values_of(session));
}

class ExternalStoreTest : public ::testing::Test {
 protected:
  ExternalStore& store(const RunOptions& run = quiet(), const Cluster& cluster = exact_alone(),
                       const ExternalStoreOptions& options = {}) {
    store_ = std::make_unique<ExternalStore>(model_.variables(), Sgd{.learning_rate = 0.1f},
                                             cluster, run, options);
    return *store_;
  }
  Tensor gradient(int variable, float value = 1) {
    Tensor made(DType::kFloat32, store_->variable(variable).initial.shape());
    std::ranges::fill(made.data<float>(), value);
    return made;
  }

  ExternalTrainee model_{false};
  ExternalTrainee with_table_{true};
  std::unique_ptr<ExternalStore> store_;
};

TEST_F(ExternalStoreTest, TakesGradientsInAnyOrderFromAnyThread) {
  std::vector<Tensor> in_order;
  for (const bool shuffled : {false, true}) {
    ExternalStore& store = this->store();
    std::mt19937 random(7);
    for (std::int64_t i = 0; i < 8; ++i) {
      ASSERT_TRUE(store.begin_step());
      const auto made = model_.compute(store, i);
      std::vector<int> order(made.gradients.size());
      for (std::size_t v = 0; v < order.size(); ++v) order[v] = int(v);
      if (shuffled) std::ranges::shuffle(order, random);
      std::vector<std::future<void>> threads;
      threads.reserve(order.size());
      for (const int v : order) {
        threads.push_back(std::async(shuffled ? std::launch::async : std::launch::deferred, [&, v] {
          model_.hand_over(store, v, made.gradients[std::size_t(v)], i);
        }));
      }
      for (auto& thread : threads) thread.get();
      store.end_step(made.loss);
    }
    if (!shuffled) in_order = values_of(store);
  }
  expect_same(values_of(*store_), in_order);
}

// The plan expects the last variable's gradient first, but other gradients are handed over before
// it. With accumulation gradients are copied, so an owner is released once its gradient is taken.
TEST_F(ExternalStoreTest, EachGradientIsTakenAsSoonAsItIsThere) {
  Cluster cluster = exact_alone();
  cluster.train.accumulate = 2;
  ExternalStore& store = this->store(quiet(), cluster);
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(store.begin_step());
    for (const int v : {0, 3, 1}) {
      // The owner of the memory signals its release.
      std::promise<void> released;
      const Tensor made = gradient(v);
      std::shared_ptr<const void> owner(made.raw(), [&](const void*) { released.set_value(); });
      std::future<void> is_released = released.get_future();
      store.ready(v, made.view(), std::move(owner));
      EXPECT_EQ(is_released.wait_for(std::chrono::seconds(30)), std::future_status::ready) << v;
    }
    store.end_step();
  }
}

TEST_F(ExternalStoreTest, AGradientThatIsNotHandedOverCountsAsZeros) {
  ExternalStore& store = this->store();
  const std::vector<Tensor> before = values_of(store);
  ASSERT_TRUE(store.begin_step());
  const Tensor handed = gradient(1);
  store.ready(1, handed.view());
  EXPECT_EQ(store.end_step().global_step, 1);
  const std::vector<Tensor> after = values_of(store);
  for (std::size_t v = 0; v < before.size(); ++v) {
    const bool same = std::ranges::equal(before[v].data<float>(), after[v].data<float>());
    EXPECT_EQ(same, v != 1) << v;
  }
}

TEST_F(ExternalStoreTest, ReleasesTheOwnerOfAGradientOnceItIsTaken) {
  ExternalStore& store = this->store();
  ASSERT_TRUE(store.begin_step());
  std::vector<std::weak_ptr<const void>> alive;
  for (int v = 0; v < store.variables(); ++v) {
    const auto owner = std::make_shared<Tensor>(gradient(v));
    alive.push_back(owner);
    store.ready(v, owner->view(), owner);
  }
  store.end_step();
  for (const auto& owner : alive) EXPECT_TRUE(owner.expired());
}

TEST_F(ExternalStoreTest, AGradientIsReadWhereItLiesWhileItsOwnerIsKept) {
  for (const float clip_norm : {0.0f, 100.0f}) {
    std::vector<const float*> read;
    std::weak_ptr<const void> owner;
    const CodeRule rule{
        .name = "own", .learning_rate = 1, .slots = {}, .apply = [&](const CodeRuleCall& memory) {
          EXPECT_EQ(owner.expired(), read.size() == 1) << "step " << read.size();
          read.push_back(memory.gradient);
          for (std::int64_t i = 0; i < memory.elements; ++i) memory.value[i] -= memory.gradient[i];
        }};
    ExternalStore store({{.name = "w", .initial = Tensor::of<float>({2}, {0, 8})}}, rule,
                        exact_alone(), quiet(), {.minimize = {.clip_norm = clip_norm}});
    const Tensor gradient = Tensor::of<float>({2}, {1, 2});
    const auto step = [&](bool gives) {
      ASSERT_TRUE(store.begin_step());
      if (gives) {
        const auto given = std::make_shared<Tensor>(gradient);
        owner = given;
        store.ready(0, given->view(), given);
      }
      store.end_step(1);
      EXPECT_TRUE(owner.expired());
    };
    step(true);
    step(false);
    step(true);
    const float* const lies = gradient.data<float>().data();
    EXPECT_THAT(read, ElementsAre(lies, Ne(lies), lies));
    EXPECT_THAT(store.read(0).data<float>(), ElementsAre(-2, 4));
    EXPECT_THAT(gradient.data<float>(), ElementsAre(1, 2)) << "it is only read";
  }
}

TEST_F(ExternalStoreTest, WhatAKernelChangesInItsPlaceIsACopyOfTheGradient) {
  ExternalStore store({{.name = "w", .initial = Tensor::of<float>({2}, {0, 8})}}, Sgd{1},
                      exact_alone(), quiet(), {.minimize = {.clip_value = 1}});
  const Tensor gradient = Tensor::of<float>({2}, {-0.5f, 2});
  ASSERT_TRUE(store.begin_step());
  store.ready(0, gradient.view());
  store.end_step(1);
  EXPECT_THAT(store.read(0).data<float>(), ElementsAre(0.5f, 7));
  EXPECT_THAT(gradient.data<float>(), ElementsAre(-0.5f, 2));
}

TEST_F(ExternalStoreTest, KeepsValuesInMemoryOfTheProgram) {
  const TemporaryFolder folder;
  RunOptions run = quiet();
  run.out = folder.path("out");
  run.save_every = Interval(2);
  const std::vector<double> wanted = model_.train(this->store(), 0, 12);
  std::vector<double> losses;
  for (const std::int64_t first : {0, 5}) {
    ExternalStore& store = this->store(run);
    std::vector<std::shared_ptr<Tensor>> memory;
    for (int v = 0; v < store.variables(); ++v) {
      memory.push_back(
          std::make_shared<Tensor>(DType::kFloat32, store.variable(v).initial.shape()));
      ASSERT_TRUE(store.keep_in(v, memory.back()->view(), memory.back()));
    }
    const std::vector<double> made = model_.train(store, first, first == 0 ? 5 : 7);
    losses.insert(losses.end(), made.begin(), made.end());
    std::vector<Tensor> kept;
    for (const auto& value : memory) kept.push_back(*value);
    expect_same(kept, values_of(store));
    ASSERT_TRUE(store.begin_step());
    EXPECT_EQ(store.need(1).data, memory[1]->raw());
    store.end_step();
    EXPECT_GT(memory[1].use_count(), 1);
    store_.reset();
    EXPECT_EQ(memory[1].use_count(), 1);
    run.resume = true;
  }
  EXPECT_EQ(losses, wanted);
}

TEST_F(ExternalStoreTest, KeepsValuesElsewhereWhereTheyAreNotOfThisProcessAlone) {
  Cluster cluster = exact_alone();
  cluster.train.accumulate = 2;
  ExternalStore& store = this->store(quiet(), cluster);
  const Tensor memory(DType::kFloat32, store.variable(0).initial.shape());
  EXPECT_FALSE(store.keep_in(0, memory.view()));
  EXPECT_EQ(memory.data<float>()[0], 0);
  EXPECT_EQ(error_of([&] { this->store().keep_in(1, memory.view()); }, ErrorCode::kInvalidArgument),
            "[session] 'hidden/b' is float32 (16), and cannot lie in float32 (6,16)");
}

TEST_F(ExternalStoreTest, RefusesCallsInTheWrongOrder) {
  ExternalStore& store = this->store();
  constexpr auto kOrder = ErrorCode::kFailedPrecondition;
  EXPECT_EQ(error_of([&] { store.need(0); }, kOrder),
            "[store] need of 'hidden/w' outside a step: begin_step comes first");
  EXPECT_THAT(error_of([&] { store.ready(0, gradient(0).view()); }, kOrder),
              HasSubstr("ready of 'hidden/w' outside a step"));
  EXPECT_THAT(error_of([&] { store.end_step(); }, kOrder), HasSubstr("end_step outside a step"));
  ASSERT_TRUE(store.begin_step());
  EXPECT_THAT(error_of([&] { store.begin_step(); }, kOrder), HasSubstr("begin_step in a step"));
  EXPECT_THAT(error_of([&] { store.read(0); }, kOrder), HasSubstr("in a step"));
  const Tensor one = gradient(0);
  store.ready(0, one.view());
  EXPECT_EQ(error_of([&] { store.ready(0, one.view()); }, kOrder),
            "[store] the second gradient of 'hidden/w' in one step: add them up before");
  EXPECT_EQ(store.end_step().step, 1) << "none of them ends the step";
  EXPECT_THAT(error_of([&] { store.ready(0, one.view()); }, kOrder), HasSubstr("outside a step"));
  store.close();
  EXPECT_THAT(error_of([&] { store.begin_step(); }, kOrder), HasSubstr("after it was closed"));
  store.close();
}

TEST_F(ExternalStoreTest, NamesBothSidesOfAGradientThatDoesNotFit) {
  ExternalStore& store = this->store();
  ASSERT_TRUE(store.begin_step());
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  EXPECT_EQ(error_of([&] { store.ready(0, gradient(1).view()); }, kWrong),
            "[store] the gradient of 'hidden/w' is float32 (16), and must be float32 (6,16)");
  const Tensor wide(DType::kFloat64, {6, 16});
  EXPECT_EQ(error_of([&] { store.ready(0, wide.view()); }, kWrong),
            "[store] the gradient of 'hidden/w' is float64 (6,16), and must be float32 (6,16)");
  EXPECT_THAT(error_of([&] { store.ready(9, wide.view()); }, ErrorCode::kNotFound),
              HasSubstr("no variable 9: it has 4"));
  EXPECT_THAT(error_of([&] { store.index_of("hiden/w"); }, ErrorCode::kNotFound),
              HasSubstr("did you mean 'hidden/w'?"));
  EXPECT_EQ(store.index_of("hidden/w"), 0);
  store.end_step();
}

TEST_F(ExternalStoreTest, RefusesRowsThatTheVariableDoesNotHave) {
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  ExternalStore store(with_table_.variables(), Sgd{}, exact_alone(), quiet());
  EXPECT_EQ(error_of(
                [&] {
                  store.begin_step({.rows = {{0, {3, 40}}}});
                },
                kWrong),
            "[store] 'table' has 40 rows, and no row 40");
  EXPECT_THAT(error_of(
                  [&] {
                    store.begin_step({.rows = {{0, std::vector<std::int32_t>(13)}}});
                  },
                  kWrong),
              HasSubstr("13 rows, and was made for 12 in a step at most"));
  EXPECT_THAT(error_of(
                  [&] {
                    store.begin_step({.rows = {{1, {0}}}});
                  },
                  kWrong),
              HasSubstr("is not read by rows"));
  ASSERT_TRUE(store.begin_step());
  EXPECT_THAT(error_of([&] { store.need(0); }, ErrorCode::kFailedPrecondition),
              HasSubstr("named no rows"));
  const Tensor rows(DType::kFloat32, {2, 6});
  const std::int32_t ids[] = {1, 40};
  EXPECT_THAT(error_of([&] { store.ready(0, ids, rows.view()); }, kWrong), HasSubstr("row 40"));
  EXPECT_THAT(error_of([&] { store.ready(0, rows.view()); }, kWrong), HasSubstr("by rows"));
  store.end_step();
  ASSERT_TRUE(store.begin_step({.rows = {{0, {5, 5}}}}));
  const TensorView five = store.need(0);
  EXPECT_EQ(five.shape, (Shape{2, 6}));
  EXPECT_TRUE(std::equal(five.as<float>(), five.as<float>() + 6, five.as<float>() + 6));
  store.end_step();
}

TEST_F(ExternalStoreTest, RefusesVariablesThatCannotBeTrained) {
  const auto making = [&](std::vector<ExternalVariable> variables) {
    return error_of([&] { ExternalStore(std::move(variables), Sgd{}, exact_alone(), quiet()); },
                    ErrorCode::kInvalidArgument);
  };
  const Tensor two(DType::kFloat32, {2});
  EXPECT_THAT(making({}), HasSubstr("there is no variable"));
  EXPECT_THAT(making({{.name = "w", .initial = two}, {.name = "w", .initial = two}}),
              HasSubstr("'w' is given twice"));
  EXPECT_THAT(making({{.name = "w", .initial = two, .frozen = true}}), HasSubstr("are frozen"));
  EXPECT_THAT(making({{.name = "w", .initial = Tensor(DType::kBFloat16, {2})}}),
              HasSubstr("'w' is bfloat16"));
  Cluster towers = exact_alone();
  towers.towers = 2;
  EXPECT_THAT(error_of([&] { this->store(quiet(), towers); }, ErrorCode::kInvalidArgument),
              HasSubstr("--towers 2"));
}

TEST_F(ExternalStoreTest, FrozenVariablesAreReadAndNeverUpdated) {
  const Tensor one = Tensor::of<float>({2}, {1, 2});
  ExternalStore store(
      {{.name = "a", .initial = one}, {.name = "b", .initial = one, .frozen = true}},
      Sgd{.learning_rate = 1}, exact_alone(), quiet());
  ASSERT_TRUE(store.begin_step());
  EXPECT_EQ(store.need(1).as<float>()[1], 2);
  EXPECT_THAT(error_of([&] { store.ready(1, one.view()); }, ErrorCode::kInvalidArgument),
              HasSubstr("the variable is frozen"));
  store.ready(0, one.view());
  store.end_step();
  EXPECT_EQ(store.read(0).data<float>()[1], 0);
  EXPECT_EQ(store.read(1).data<float>()[1], 2);
}

TEST_F(ExternalStoreTest, EachVariableMayHaveOptionsAndAFactorOfItsOwn) {
  const Tensor one = Tensor::of<float>({1}, {1});
  ExternalStore store(
      {{.name = "w", .initial = one, .own = VariableGroup{.prefix = "", .rule = Sgd{0.5f}}},
       {.name = "w2", .initial = one},
       {.name = "w3", .initial = one}},
      Sgd{.learning_rate = 0.25f}, exact_alone(), quiet());
  store.set_learning_rate_factor(2, 0);
  ASSERT_TRUE(store.begin_step());
  for (int v = 0; v < 3; ++v) store.ready(v, one.view());
  store.end_step();
  EXPECT_EQ(store.read(0).item<float>(), 0.5f);
  EXPECT_EQ(store.read(1).item<float>(), 0.75f) << "a name that begins as another's";
  EXPECT_EQ(store.read(2).item<float>(), 1);
}

TEST_F(ExternalStoreTest, CodeOfTheProgramIsARuleWhoseSlotsAreSaved) {
  const TemporaryFolder folder;
  std::vector<std::int64_t> counts;
  const CodeRule rule{.name = "own",
                      .learning_rate = 0.5f,
                      .slots = {{"seen"}},
                      .apply = [&](const CodeRuleCall& memory) {
                        counts.push_back(memory.count);
                        for (std::int64_t i = 0; i < memory.elements; ++i) {
                          memory.slots[0][i] += memory.gradient[i];
                          memory.value[i] -= memory.learning_rate * memory.slots[0][i];
                        }
                      }};
  RunOptions run = quiet();
  run.out = folder.path("out");
  for (int part = 0; part < 2; ++part) {
    ExternalStore store({{.name = "w", .initial = Tensor::of<float>({2}, {0, 8})}}, rule,
                        exact_alone(), run);
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(store.begin_step());
      const Tensor gradient = Tensor::of<float>({2}, {1, 2});
      store.ready(0, gradient.view());
      store.end_step(1);
    }
    const Tensor value = store.read(0);
    EXPECT_EQ(value.data<float>()[0], part == 0 ? -1.5f : -5.0f);
    store.close();
    run.resume = true;
  }
  EXPECT_EQ(counts, (std::vector<std::int64_t>{1, 2, 3, 4}));
}

TEST_F(ExternalStoreTest, EndsWhereTheRunDoes) {
  ExternalStore& store = this->store(quiet(3));
  EXPECT_EQ(model_.train(store, 0, 10).size(), 3);
  EXPECT_FALSE(store.begin_step()) << "still";
}

TEST_F(ExternalStoreTest, AHookSeesEachStepAndEndsTraining) {
  ExternalStore& store = this->store();
  store.with_session([](Session& session) { session.add(StopAtStep(2)); });
  EXPECT_EQ(model_.train(store, 0, 10).size(), 2);
}

TEST_F(ExternalStoreTest, ALossThatIsNaNEndsTrainingAndEveryWait) {
  ExternalStore& store = this->store();
  ASSERT_TRUE(store.begin_step());
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(error_of([&] { store.end_step(nan); }, ErrorCode::kFailedPrecondition),
              HasSubstr("nan"));
  EXPECT_THAT(error_of([&] { store.begin_step(); }, ErrorCode::kFailedPrecondition),
              HasSubstr("nan"));
}

TEST_F(ExternalStoreTest, AGradientThatIsNotFiniteIsNamed) {
  ExternalStore& store = this->store();
  ASSERT_TRUE(store.begin_step());
  Tensor bad = gradient(2);
  bad.data<float>()[5] = std::numeric_limits<float>::infinity();
  store.ready(2, bad.view());
  const std::string why = error_of([&] { store.end_step(1.0); }, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(why, HasSubstr("worker:0 contributed NaN or infinity to out/w in its step 0"));
  EXPECT_EQ(error_of([&] { store.need(0); }, ErrorCode::kFailedPrecondition), why);
}

TEST_F(ExternalStoreTest, AStepThatIsAbandonedEndsTheSessionWithItsReason) {
  ExternalStore& store = this->store();
  ASSERT_TRUE(store.begin_step());
  store.abandon("the data loader failed");
  EXPECT_THAT(error_of([&] { store.begin_step(); }, ErrorCode::kCancelled),
              HasSubstr("the data loader failed"));
  ExternalStore& between = this->store();
  EXPECT_EQ(model_.train(between, 0, 1).size(), 1);
  between.abandon("out of patience");
  EXPECT_THAT(error_of([&] { between.begin_step(); }, ErrorCode::kCancelled),
              HasSubstr("out of patience"));
}

TEST_F(ExternalStoreTest, AStoreMayBeLeftInTheMiddleOfAStep) {
  ExternalStore& store = this->store();
  ASSERT_TRUE(store.begin_step());
  const Tensor handed = gradient(0);
  store.ready(0, handed.view());
  store_.reset();
}

TEST_F(ExternalStoreTest, AnInterruptSavesAtTheEndOfTheStepAndTheRunGoesOnFromThere) {
  const TemporaryFolder folder;
  std::vector<double> unbroken = model_.train(this->store(), 0, 8);
  RunOptions run = quiet();
  run.out = folder.path("out");
  ExternalStore& store = this->store(run);
  EXPECT_EQ(model_.train(store, 0, 4).size(), 4);
  ASSERT_TRUE(store.begin_step());
  store.interrupt();
  const auto made = model_.compute(store, 4);
  for (int v = 0; v < 4; ++v) store.ready(v, made.gradients[std::size_t(v)].view());
  EXPECT_EQ(store.end_step(made.loss).step, 5);
  EXPECT_THAT(error_of([&] { store.begin_step(); }, ErrorCode::kCancelled),
              HasSubstr("worker:0 was interrupted at step 5"));
  run.resume = true;
  ExternalStore& resumed = this->store(run);
  std::int64_t at = 0;
  resumed.with_session([&](Session& session) { at = session.last_step().step; });
  EXPECT_EQ(at, 5);
  const std::vector<double> rest = model_.train(resumed, 5, 3);
  EXPECT_EQ(rest, std::vector<double>(unbroken.begin() + 5, unbroken.end()));
  store_.reset();
}

TEST_F(ExternalStoreTest, KeepsTheProgramsPlaceInItsDataAndSavesWhenItIsClosed) {
  const TemporaryFolder folder;
  RunOptions run = quiet();
  run.out = folder.path("out");
  {
    ExternalStore& store = this->store(run);
    ExternalStep step;
    step.position = TaskPosition{{{"batch", 17}}, {}};
    ASSERT_TRUE(store.begin_step(step));
    store.end_step();
    store.close();
  }
  run.resume = true;
  this->store(run).with_session([](Session& session) {
    EXPECT_EQ(session.position().numbers.at("batch"), 17);
    EXPECT_EQ(session.last_step().step, 1);
  });
  store_.reset();
}

TEST_F(ExternalStoreTest, AWaitAsksTheProgramWhetherToGoOn) {
  std::atomic<bool> fails{false};
  ExternalStoreOptions options;
  options.check_wait = [&] {
    if (fails) throw std::runtime_error("the user has had enough");
  };
  ExternalStore& store = this->store(quiet(), exact_alone(), options);
  fails = true;
  std::promise<void> go_on;
  EXPECT_THROW(store.with_session([&](Session&) { go_on.get_future().wait(); }),
               std::runtime_error);
  fails = false;
  go_on.set_value();
  EXPECT_EQ(model_.train(store, 0, 2).size(), 2) << "the store goes on";
}

// The run's observers are asked once the times are known.
TEST_F(ExternalStoreTest, APredictionLearnsFromTenStepsOfOneProcess) {
  RunOptions run = quiet(3);  // the run's limit does not count for a prediction
  run.predicts = true;
  int planned = 0, workers = 0;
  std::map<std::string, double> flops;  // of each node
  double busy_cores = 0;
  run.observers.push_back(planned_only([&](const PlannedSession& session) {
    ++planned;
    workers = session.cluster.launch.workers;
    for (const auto& node : session.graphs[0]->nodes()) {
      if (node->name().starts_with("paceline/")) flops[node->name()] = node->op().cost(*node).flops;
      if (node->attributes().has(kBusyCores)) {
        busy_cores = node->attributes().get<double>(kBusyCores);
      }
    }
    return true;
  }));
  Cluster of_three;
  of_three.process = Cluster::Process::kLauncher;
  of_three.launch.ps = 1;
  of_three.launch.workers = 3;
  of_three.threads = 1;
  ExternalStore& store = this->store(run, of_three);
  int steps = 0;
  while (store.begin_step()) {
    EXPECT_FALSE(store.predicted());
    EXPECT_EQ(planned, 0) << "step " << steps;
    ++steps;
    // The last variable is needed first, and its gradient is ready last: 20 ms after the others.
    const Tensor one = gradient(3);
    store.need(3);
    std::vector<Tensor> others;  // gradients are read until the step has ended
    for (int v = 0; v < 3; ++v) others.push_back(gradient(v));
    for (int v = 0; v < 3; ++v) {
      store.need(v);
      store.ready(v, others[std::size_t(v)].view());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    store.ready(3, one.view());
    store.end_step(1.0);
  }
  EXPECT_TRUE(store.predicted());
  EXPECT_EQ(steps, 10);
  EXPECT_EQ(planned, 1);
  EXPECT_EQ(workers, 3);
  EXPECT_EQ(store.read(0).shape(), model_.variables()[0].initial.shape()) << "of the steps alone";
  store.close();
  ASSERT_EQ(flops.size(), 9) << "a node for each value and gradient, and the loss";
  EXPECT_GE(flops["paceline/gradient/" + store_->variable(3).name], 0.02 * 1e9);
  EXPECT_GT(busy_cores, 0);
  EXPECT_LT(busy_cores, 0.75) << "it sleeps in its steps";
}

TEST_F(ExternalStoreTest, APredictionNeedsTenSteps) {
  RunOptions run = quiet();
  run.predicts = true;
  bool planned = false;
  run.observers.push_back(planned_only([&](const PlannedSession&) { return planned = true; }));
  ExternalStore& store = this->store(run);
  EXPECT_EQ(model_.train(store, 0, 9).size(), 9);
  EXPECT_THAT(error_of([&] { store.close(); }, ErrorCode::kFailedPrecondition),
              HasSubstr("ended after 9 of the 10 steps"));
  EXPECT_FALSE(planned);
}

// A copy predicts nothing itself: it tells its pace, and trains on until it is let go.
TEST_F(ExternalStoreTest, ACopyTellsItsPaceAndEndsWhenAllHave) {
  const TemporaryFolder folder;
  const FileDescriptor listener = listen_at_abstract(folder.path());
  RunOptions run = quiet();
  run.predicts = true;
  own_program_run(run).copy_gate = folder.path() + "/1";
  bool planned = false;
  run.observers.push_back(planned_only([&](const PlannedSession&) { return planned = true; }));
  auto gate = std::async(std::launch::async, [&] {
    pollfd called{listener.get(), POLLIN, 0};
    poll(&called, 1, -1);
    const FileDescriptor copy(accept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(next_copies_message(copy.get())->kind, CopiesMessage::Kind::kReady);
    send_message(copy.get(), text_of({.kind = CopiesMessage::Kind::kGo}), -1);
    return next_copies_message(copy.get());
  });
  ExternalStore& store = this->store(run);
  int steps = 0;
  while (model_.make_step(store, steps)) ++steps;
  EXPECT_GE(steps, 10);
  EXPECT_TRUE(store.predicted());
  const auto told = gate.get();
  ASSERT_TRUE(told && told->kind == CopiesMessage::Kind::kPace);
  EXPECT_GT(told->paces.front().seconds, 0);
  EXPECT_FALSE(planned);
  store.close();
}

TEST_F(ExternalStoreTest, ACopyNeedsTheCommandThatStartedIt) {
  RunOptions run = quiet();
  run.predicts = true;
  own_program_run(run).copy_gate = "nobody-listens-here/1";
  EXPECT_THAT(error_of([&] { this->store(run); }, ErrorCode::kUnavailable),
              HasSubstr("that has started this process has ended"));
}

TEST_F(ExternalStoreTest, AnObserverThatWantsThePlanAloneLeavesNoStep) {
  RunOptions run = quiet();
  run.observers.push_back(planned_only([](const PlannedSession&) { return true; }));
  ExternalStore& store = this->store(run);
  EXPECT_FALSE(store.begin_step());
  store.close();
}

}  // namespace
}  // namespace paceline
