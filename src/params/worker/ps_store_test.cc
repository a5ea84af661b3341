#include "params/worker/ps_store.h"

#include <gtest/gtest.h>

#include "params/local/local_store.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

// Dense variables of odd sizes: one larger than a chunk, one of one dimension, a scalar, and one
// that is not trained.
std::vector<VariableSpec> dense_variables(const Rule& rule) {
  return {{.name = "w", .shape = {601, 503}, .rule = rule, .weight_decay = 0.001f},
          {.name = "b", .shape = {503}, .rule = rule},
          {.name = "scale", .shape = {}, .rule = rule},
          {.name = "fixed", .shape = {5, 2}, .rule = rule, .trained = false}};
}

std::vector<VariableSpec> sparse_variables(const Rule& rule) {
  return {{.name = "embedding", .shape = {90, 7}, .rule = rule, .sparse = true},
          {.name = "w", .shape = {7, 11}, .rule = rule}};
}

struct Case {
  std::string name;
  Rule rule;
  bool sparse, clipped, shared;
  int num_ps;
};

class PsStoreSame : public JobFixture, public ::testing::WithParamInterface<Case> {};

// With one worker, the values have the same bits as in the store of one process, in frames and in
// shared memory.
TEST_P(PsStoreSame, AsTheLocalStoreBitForBit) {
  const Case& test = GetParam();
  const auto variables = test.sparse ? sparse_variables(test.rule) : dense_variables(test.rule);
  make_spec(test.num_ps, 1);
  start_all_ps();
  PsStoreOptions options = store_options(0);
  options.share_memory = test.shared;
  const auto remote = PsStore::join(options, variables);
  const auto local = make_local_store(variables, nullptr, nullptr);
  for (ParameterStore* store :
       {static_cast<ParameterStore*>(remote.get()), static_cast<ParameterStore*>(local.get())}) {
    store->write(initial_states(variables), 0);
  }
  StepDriver far(*remote, test.clipped), near(*local, test.clipped);
  for (int step = 1; step <= 50; ++step) {
    far.knows_next_rows = near.knows_next_rows = step % 4 != 0;
    EXPECT_EQ(far.step(), step);
    EXPECT_EQ(near.step(), step);
    if (step % 10 == 0) {
      ASSERT_EQ(everything(*remote), everything(*local)) << "after step " << step;
    }
  }
  remote->goodbye();
  for (auto& ps : ps_tasks_) EXPECT_EQ(ps.get().applied, 50);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::vector<std::pair<std::string, Rule>> rules = {
      {"sgd", Sgd{.learning_rate = 0.1f}},
      {"momentum", Momentum{.learning_rate = 0.05f, .nesterov = true}},
      {"adam", Adam{.learning_rate = 0.01f}},
      {"adagrad", Adagrad{}}};
  for (const auto& [name, rule] : rules) {
    for (const bool sparse : {false, true}) {
      for (const bool clipped : {false, true}) {
        for (const bool shared : {false, true}) {
          for (const int num_ps : {1, 3}) {
            all.push_back({name + (sparse ? "_sparse" : "_dense") + (clipped ? "_clipped" : "") +
                               (shared ? "_shared_" : "_") + std::to_string(num_ps) + "ps",
                           rule, sparse, clipped, shared, num_ps});
          }
        }
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rules, PsStoreSame, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

class PsStoreJob : public JobFixture {};

TEST_F(PsStoreJob, WorkersInThreadsCountEveryStepOnce) {
  const auto variables = sparse_variables(Momentum{.learning_rate = 1e-3f});
  make_spec(2, 3);
  start_all_ps();
  auto stores = join_all(variables);
  stores[0]->write(initial_states(variables), 100);
  std::vector<std::future<void>> workers;
  workers.reserve(stores.size());
  for (const auto& store : stores) {
    workers.push_back(std::async(std::launch::async, [&store] {
      store->wait_initialised();
      StepDriver driver(*store, true);
      for (int i = 0; i < 20; ++i) driver.step();
      store->set_done();
      EXPECT_TRUE(store->wait_all_done(Deadline::after(60s)));
      EXPECT_TRUE(store->all_warm() || store->all_done());
    }));
  }
  for (auto& worker : workers) worker.get();
  std::int64_t last = 0;
  for (const auto& store : stores) last = std::max(last, store->global_step());
  EXPECT_EQ(last, 160);
  for (const auto& store : stores) store->goodbye();
  for (auto& ps : ps_tasks_) EXPECT_EQ(ps.get().applied, 60);
}

// Sums of small whole numbers are exact in float32. So a contribution that is lost or applied twice
// changes the sum.
TEST_F(PsStoreJob, ContributionsOfAllWorkersAddUp) {
  const std::vector<VariableSpec> variables = {
      {.name = "sum", .shape = {700, 601}, .rule = Add{}},
      {.name = "rows", .shape = {40, 3}, .rule = Add{}, .sparse = true}};
  make_spec(2, 2);
  start_all_ps();
  auto stores = join_all(variables);
  std::vector<VariableState> zeros;
  for (int v = 0; v < 2; ++v) {
    const VariableSpec& spec = variables[std::size_t(v)];
    zeros.push_back({.variable = v, .value = Tensor(spec.dtype, spec.shape), .slots = {}});
  }
  stores[0]->write(zeros, 0);
  const PlanBinding plan{
      .uses = {{.variable = 0, .updated = true}, {.variable = 1, .updated = true, .most_rows = 2}}};
  const auto work = [&](ParameterStore& store, bool clipped) {
    const auto steps = store.bind(plan, clipped ? 1.0f : 0.0f);
    const std::vector<float> rates(2, 0.0f);
    const std::vector<std::int32_t> ids = {1, 39};
    for (int i = 0; i < 30; ++i) {
      steps->begin_step(StepKind::kTrain, {}, {.learning_rates = rates, .examples = 1, .step = i});
      for (int v = 0; v < 2; ++v) {
        steps->need(v);
        const TensorView place = steps->place(v).view;
        std::fill_n(place.as<float>(), place.shape.elements(), 1.0f);
        steps->ready(v, {.sparse = v == 1, .ids = v == 1 ? ids : std::vector<std::int32_t>{}}, {});
      }
      steps->end_step(1, {}).global_step();
    }
    everything(store);  // this read reaches every ps after this worker's last contribution
  };
  auto other = std::async(std::launch::async, [&] { work(*stores[1], true); });
  work(*stores[0], false);
  other.get();
  const auto all = everything(*stores[0]);
  EXPECT_EQ(all[0], std::vector<float>(700 * 601, 60.0f));
  EXPECT_EQ(all[1][0], 0.0f);
  EXPECT_EQ(all[1][3], 60.0f);
  EXPECT_EQ(all[1][119], 60.0f);
  for (const auto& store : stores) store->goodbye();
}

// The rules on a ps flush denormals, as they do in one process, where the executor's step flushes
// them.
TEST_F(PsStoreJob, RulesFlushDenormals) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {8}, .rule = Sgd{0.5}}};
  make_spec(1, 1);
  start_all_ps();
  const auto store = PsStore::join(store_options(0), variables);
  std::vector<VariableState> states = initial_states(variables);
  constexpr int kGradientFollowsValue = 3;  // in the driver's first step
  states[0].value.data<float>()[kGradientFollowsValue] = 1e-40f;
  store->write(std::move(states), 0);
  StepDriver(*store, false).step();
  EXPECT_EQ(everything(*store)[0][kGradientFollowsValue], 0.0f);
  store->goodbye();
}

TEST_F(PsStoreJob, TasksStartInAnyOrder) {
  const auto variables = sparse_variables(Sgd{});
  make_spec(2, 2);
  auto second =
      std::async(std::launch::async, [&] { return PsStore::join(store_options(1), variables); });
  ps_tasks_.push_back(start_ps(ps_options(1)));
  ASSERT_TRUE(wait_said("waiting for ps:0 at ps0:1: nobody listens"));
  ps_tasks_.push_back(start_ps(ps_options(0)));
  ASSERT_TRUE(wait_said("waiting for the chief to declare"));
  const auto chief = PsStore::join(store_options(0), variables);
  const auto worker = second.get();
  EXPECT_FALSE(worker->initialised());
  auto waiting = std::async(std::launch::async, [&] { worker->wait_initialised(); });
  ASSERT_TRUE(wait_said("waiting for the chief to initialise"));
  chief->write(initial_states(variables), 7);
  waiting.get();
  EXPECT_EQ(worker->global_step(), 7);
  chief->goodbye();
  worker->goodbye();
}

TEST_F(PsStoreJob, PlacementTextNamesEveryPs) {
  make_spec(2, 1);
  start_all_ps();
  const auto store = std::move(join_all(dense_variables(Sgd{})).front());
  EXPECT_NE(store->placement_text().find("w rows 0-"), std::string::npos);
  EXPECT_NE(store->placement_text().find("on ps:1"), std::string::npos);
  store->goodbye();
}

}  // namespace
}  // namespace paceline
