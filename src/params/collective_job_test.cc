// Whole all-reduces in one process, over every kind of link between workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "params/local/local_store.h"
#include "params/testing/collective_fixture.h"
#include "params/testing/job_fixture.h"
#include "params/testing/raw_peer.h"
#include "params/wire/collective_messages.h"
#include "params/wire/variables.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

using CollectiveJob = CollectiveFixture;

INSTANTIATE_TEST_SUITE_P(Links, CollectiveJob,
                         testing::Values(CollectiveWay{"inproc", "inproc", true},
                                         CollectiveWay{"ring", "inproc", false},
                                         CollectiveWay{"shm", "shm", true},
                                         CollectiveWay{"tcp", "tcp", true}),
                         [](const auto& one) { return std::string(one.param.name); });

const std::vector<VariableSpec> kReducedVariables = {
    {.name = "bias", .shape = {7}, .rule = Adam{.learning_rate = 0.01f}, .average_decay = 0.75f},
    {.name = "w", .shape = {301, 203}, .rule = Adam{.learning_rate = 0.01f}},
    {.name = "embedding", .shape = {90, 7}, .rule = Sgd{}, .sparse = true},
    {.name = "scalar", .shape = {}, .rule = Momentum{}}};

// One plan that contributes the same number to each element of "w".
class ConstantSteps {
 public:
  ConstantSteps(ParameterStore& store, float clip_norm)
      : steps_(store.bind({.uses = {{.variable = 0, .updated = true}}}, clip_norm)) {}
  std::int64_t step(float number, std::int64_t examples) {
    const float learning_rate = 1;
    steps_->begin_step(StepKind::kTrain, {},
                       {.learning_rates = {&learning_rate, 1}, .examples = examples});
    const TensorView place = steps_->place(0).view;
    std::fill_n(place.as<float>(), place.shape.elements(), number);
    steps_->ready(0, {}, {});
    return steps_->end_step(1, {}).global_step();
  }

 private:
  std::unique_ptr<StoreSteps> steps_;
};

float first_value(ParameterStore& store) {
  const VariableId variable = 0;
  return store.read({&variable, 1})[0].value.data<float>()[0];
}

TEST_P(CollectiveJob, EqualContributionsGiveTheBitsOfOneProcess) {
  make_spec(2);
  const Stores stores = join_all(kReducedVariables);
  const auto local = make_local_store(kReducedVariables, nullptr, nullptr);
  local->write(initial_states(kReducedVariables), 0);
  StepDriver alone(*local, false);
  for (int step = 0; step < 10; ++step) alone.step();
  each(stores, [](CollectiveStore& store) {
    StepDriver driver(store, false);
    for (int step = 0; step < 10; ++step) EXPECT_EQ(driver.step(), step + 1);
  });
  for (const auto& store : stores) EXPECT_EQ(everything(*store), everything(*local));
  each(stores, [](CollectiveStore& store) { store.goodbye(); });
}

TEST_P(CollectiveJob, WorkersHaveTheSameBitsWhenTheirContributionsDiffer) {
  make_spec(3);
  const Stores stores = join_all(kReducedVariables);
  each({0, 1, 2}, [&](int worker) {
    StepDriver driver(*stores[std::size_t(worker)], true);
    for (int step = 0; step < 5 + worker; ++step) {
      if (step >= worker) driver.step();
    }
  });
  EXPECT_EQ(everything(*stores[0]), everything(*stores[1]));
  EXPECT_EQ(everything(*stores[0]), everything(*stores[2]));
  each(stores, [](CollectiveStore& store) { store.goodbye(); });
}

TEST_P(CollectiveJob, ContributionsCountByTheirExamples) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {1000}, .rule = Sgd{}}};
  make_spec(2);
  const Stores stores = join_all(variables);
  const float before = first_value(*stores[0]);
  each({0, 1}, [&](int worker) {
    ConstantSteps(*stores[std::size_t(worker)], 0).step(worker == 0 ? 1 : 5, worker == 0 ? 3 : 1);
  });
  for (const auto& store : stores) EXPECT_FLOAT_EQ(first_value(*store), before - 2);
  each(stores, [](CollectiveStore& store) { store.goodbye(); });
}

TEST_P(CollectiveJob, TheNormThatClipsIsThatOfTheMean) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {4}, .rule = Sgd{}}};
  make_spec(2);
  const Stores stores = join_all(variables);
  const float before = first_value(*stores[0]);
  each({0, 1}, [&](int worker) {
    ConstantSteps(*stores[std::size_t(worker)], 1).step(worker == 0 ? 8 : 0, 1);
  });
  // The mean is 4 in each of 4 elements, so its norm is 8.
  for (const auto& store : stores) EXPECT_FLOAT_EQ(first_value(*store), before - 0.5f);
  each(stores, [](CollectiveStore& store) { store.goodbye(); });
}

TEST_P(CollectiveJob, TheOthersGoOnWhenAWorkerLeaves) {
  make_spec(3);
  Stores stores = join_all(kReducedVariables);
  each({0, 1, 2}, [&](int worker) {
    CollectiveStore& store = *stores[std::size_t(worker)];
    StepDriver driver(store, false);
    for (int step = 0; step < (worker == 0 ? 3 : 8); ++step) driver.step();
    if (worker == 0) store.goodbye();
  });
  EXPECT_EQ(stores[1]->global_step(), 8);
  EXPECT_EQ(everything(*stores[1]), everything(*stores[2]));
  EXPECT_TRUE(wait_said("worker:1: worker:0 has ended its training; 2 workers go on")) << said();
  each({1, 2}, [&](int worker) { stores[std::size_t(worker)]->goodbye(); });
}

TEST_P(CollectiveJob, TheOthersGoOnWhenTheChiefIsLost) {
  make_spec(3);
  Stores stores = join_all(kReducedVariables);
  each({0, 1, 2}, [&](int worker) {
    StepDriver driver(*stores[std::size_t(worker)], false);
    for (int step = 0; step < (worker == 0 ? 3 : 8); ++step) driver.step();
    if (worker == 0) stores[0].reset();
  });
  EXPECT_EQ(stores[2]->global_step(), 8);
  EXPECT_EQ(everything(*stores[1]), everything(*stores[2]));
  EXPECT_TRUE(stores[1]->takes_over_saving());
  EXPECT_FALSE(stores[2]->takes_over_saving());
  EXPECT_NE(said().find("worker:1: worker:0 is lost"), std::string::npos) << said();
  each({1, 2}, [&](int worker) { stores[std::size_t(worker)]->goodbye(); });
}

TEST_P(CollectiveJob, ALateWorkerIsGivenValuesSlotsAndStep) {
  make_spec(3);
  join_timeout_ = 2s;
  auto second = join_later(1, kReducedVariables);
  Stores stores;
  stores.push_back(join_later(0, kReducedVariables).get());
  stores.push_back(second.get());
  stores[0]->write(initial_states(kReducedVariables), 0);
  stores[1]->wait_initialised();
  EXPECT_TRUE(wait_said("worker:2 has not come")) << said();
  each({0, 1}, [&](int worker) {
    StepDriver driver(*stores[std::size_t(worker)], false);
    for (int step = 0; step < 4; ++step) driver.step();
  });
  auto third = join_later(2, kReducedVariables);
  stores.push_back(nullptr);
  each({0, 1, 2}, [&](int worker) {
    if (worker == 2) {
      stores[2] = third.get();
      stores[2]->wait_initialised();
      EXPECT_GE(stores[2]->global_step(), 4);
    }
    CollectiveStore& store = *stores[std::size_t(worker)];
    StepDriver driver(store, false);
    while (store.global_step() < 400) driver.step();
  });
  EXPECT_EQ(everything(*stores[0]), everything(*stores[2]));
  EXPECT_EQ(everything(*stores[0]), everything(*stores[1]));
  EXPECT_TRUE(wait_said("worker:2 joins at global step")) << said();
  each(stores, [](CollectiveStore& store) { store.goodbye(); });
}

TEST_P(CollectiveJob, AWorkerThatEndsItsDataEarlyWaitsForTheValuesOfTheEnd) {
  make_spec(2);
  const Stores stores = join_all(kReducedVariables);
  each({0, 1}, [&](int worker) {
    CollectiveStore& store = *stores[std::size_t(worker)];
    StepDriver driver(store, false);
    for (int step = 0; step < (worker == 0 ? 2 : 6); ++step) driver.step();
    store.set_done();
    const Deadline deadline = Deadline::after(60s);
    while (!store.wait_all_done(Deadline::after(50ms))) ASSERT_FALSE(deadline.passed());
  });
  EXPECT_EQ(stores[0]->global_step(), 6);
  EXPECT_EQ(everything(*stores[0]), everything(*stores[1]));
  each(stores, [](CollectiveStore& store) { store.goodbye(); });
}

TEST_P(CollectiveJob, AWorkerWithOtherVariablesIsRefused) {
  make_spec(2);
  const std::vector<VariableSpec> others = {{.name = "w", .shape = {3}, .rule = Sgd{}}};
  auto chief = join_later(0, kReducedVariables);
  try {
    join_later(1, others).get();
    ADD_FAILURE() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_NE(std::string(error.what()).find("its variables differ from those of worker:0"),
              std::string::npos)
        << error.what();
  }
  auto right = join_later(1, kReducedVariables);
  const auto store = chief.get();
  store->write(initial_states(kReducedVariables), 0);
  right.get()->goodbye();
  store->goodbye();
}

// The worker was stopped for a while. In the middle of a step it is told that the others went on
// without it.
TEST_P(CollectiveJob, AStepReadsItsValuesToItsEndThoughTheWorkerHasLeftTheGroup) {
  make_spec(2);
  join_timeout_ = 1s;
  const std::unique_ptr<CollectiveStore> store = join_later(0, kReducedVariables).get();
  store->write(initial_states(kReducedVariables), 0);
  const std::vector<float> learning_rates(kReducedVariables.size(), 1);
  const auto steps = store->bind({.uses = {{.variable = 0, .updated = true}}}, 0);
  steps->begin_step(StepKind::kTrain, {}, {.learning_rates = learning_rates});

  const CollectiveOptions other = options(1);
  const auto link = other.link_factory ? other.link_factory({}) : make_link(other.link, {});
  RawPeer peer(*link, spec_.workers[0]);
  Hello hello = good_hello(1);
  hello.fingerprint = fingerprint_of(kReducedVariables);
  peer.send(MessageType::kHello, encode(hello));
  ASSERT_TRUE(peer.wait_for(MessageType::kWelcome));
  peer.send(MessageType::kGroupStatus, encode(GroupStatus{.standing = Standing::kMember,
                                                          .epoch = std::uint64_t{1} << 40,
                                                          .step = 9,
                                                          .members = {1},
                                                          .connected = {0}}));
  EXPECT_TRUE(wait_said("the others went on without worker:0")) << said();
  store->next_step();  // returns once the worker has heard that
  EXPECT_FALSE(store->initialised());
  EXPECT_NO_THROW(steps->need(0));
}

TEST_P(CollectiveJob, EndOfTrainingReachesAll) {
  make_spec(2);
  const Stores stores = join_all(kReducedVariables);
  each({0, 1}, [&](int worker) {
    CollectiveStore& store = *stores[std::size_t(worker)];
    StepDriver driver(store, false);
    int made = 0;
    while (!store.training_ended()) {
      driver.step();
      if (worker == 1 && ++made == 3) store.end_training();
    }
    store.goodbye();
  });
}

}  // namespace
}  // namespace paceline
