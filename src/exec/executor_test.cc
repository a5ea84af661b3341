#include "exec/executor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "exec/plan_runner.h"
#include "exec/testing/fake_store.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::ElementsAre;

std::vector<float> floats(const TensorView& view) {
  const float* data = view.as<float>();
  return {data, data + view.shape.elements()};
}

class ExecutorTest : public testing::Test {
 protected:
  std::unique_ptr<PlanRunner> train(const Training& training, std::vector<Value> fetches = {}) {
    const PlanRequest request = {&training.graph(), std::move(fetches), &training, true, {}};
    return std::make_unique<PlanRunner>(request, values_, *device_, clock_);
  }
  std::unique_ptr<PlanRunner> fetch(std::vector<Value> fetches, bool run_assignments = true) {
    const Graph* graph = &fetches[0].graph();
    const PlanRequest request = {graph, std::move(fetches), nullptr, run_assignments, {}};
    return std::make_unique<PlanRunner>(request, values_, *device_, clock_);
  }
  static void fill(const TensorView& view, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), view.as<float>());
  }

  ManualClock clock_;
  std::unique_ptr<Device> device_ = make_device({.kind = "naive"}, clock_);
  Graph graph_;
  std::map<std::string, Tensor> values_;
};

TEST_F(ExecutorTest, CallsTheStoreInTheOrderOfTheInterface) {
  values_["w"] = Tensor::of<float>({2}, {1, 2});
  const Value x = graph_.input("x", {2});
  const Value w = graph_.variable("w", {2});
  // The gradient is 2·x²·w.
  const Training training = minimize(reduce_sum(square(mul(x, w))), Sgd{});
  const auto runner = train(training);
  fill(runner->executor->view(x), {1, 2});
  runner->run();
  EXPECT_THAT(runner->calls, ElementsAre("begin", "need w", "place w", "ready w", "end"));
  EXPECT_EQ(runner->executor->loss(), 17);
  EXPECT_EQ(floats(values_["w"].view()), (std::vector<float>{-1, -14}));
  runner->run();
  EXPECT_EQ(runner->executor->loss(), 1 + 28 * 28);
}

TEST_F(ExecutorTest, DenormalsAreZeroInAStepAndNotAfterIt) {
  const Value x = graph_.input("x", {2});
  const auto runner = fetch({mul(x, x)});
  fill(runner->executor->view(x), {1e-20f, 1e-10f});
  runner->run();
  EXPECT_EQ(floats(runner->executor->fetched(0)), (std::vector<float>{0, 1e-10f * 1e-10f}));
  const volatile float small = 1e-20f;
  EXPECT_GT(small * small, 0.0f) << "the caller's own numbers are its own business";
}

TEST_F(ExecutorTest, PassesTheClipScaleOfTheGlobalNorm) {
  values_["w"] = Tensor(DType::kFloat32, {2});
  const Value x = graph_.input("x", {2});
  const Training training = minimize(reduce_sum(mul(x, graph_.variable("w", {2}))), Sgd{},
                                     {.clip_norm = 2, .learning_rate = {}, .groups = {}});
  const auto runner = train(training);
  fill(runner->executor->view(x), {3, 4});
  runner->run();
  EXPECT_EQ(runner->executor->global_norm(), 5);
  EXPECT_FLOAT_EQ(runner->steps->last_clip_scale, 0.4f);
  fill(runner->executor->view(x), {0.3f, 0.4f});
  runner->run();
  EXPECT_EQ(runner->steps->last_clip_scale, 1);
}

TEST_F(ExecutorTest, LeavesTheClippingToAStoreThatComputesTheNorm) {
  values_["w"] = Tensor(DType::kFloat32, {2});
  const Value x = graph_.input("x", {2});
  const Training training = minimize(reduce_sum(mul(x, graph_.variable("w", {2}))), Sgd{},
                                     {.clip_norm = 2, .learning_rate = {}, .groups = {}});
  const auto runner = train(training);
  runner->steps->computes_norm = NormBy::kStore;
  fill(runner->executor->view(x), {3, 4});
  runner->run();
  EXPECT_EQ(runner->executor->global_norm(), 5);
  EXPECT_EQ(runner->steps->last_clip_scale, 1);
}

TEST_F(ExecutorTest, FetchedValuesAreThoseThatTheStepRead) {
  values_["w"] = Tensor::of<float>({1}, {10});
  const Value x = graph_.input("x", {1});
  const Value w = graph_.variable("w", {1});
  const Value h = graph_.local("h", {1});
  graph_.assign(h, add(h, x));
  const Value y = mul(x, w);
  const Training training = minimize(reduce_sum(y), Sgd{});
  const auto runner = train(training, {w, y, h, x, graph_.constant(Tensor::scalar(7.0f))});
  fill(runner->executor->view(x), {2});
  for (const float before : {10.0f, 8.0f}) {
    runner->run();
    EXPECT_EQ(*runner->executor->fetched(0).as<float>(), before);
    EXPECT_EQ(*runner->executor->fetched(1).as<float>(), 2 * before);
    EXPECT_EQ(*runner->executor->fetched(2).as<float>(), 10 - before);
    EXPECT_EQ(*runner->executor->fetched(3).as<float>(), 2);
    EXPECT_EQ(*runner->executor->fetched(4).as<float>(), 7);
  }
}

TEST_F(ExecutorTest, LocalsCarryFromStepToStepAndSwapAtOnce) {
  const Value a = graph_.local("a", {1}), b = graph_.local("b", {1});
  graph_.assign(a, b);
  graph_.assign(b, a);
  const auto runner = fetch({sub(a, b)});
  *runner->executor->view("a").as<float>() = 1;
  *runner->executor->view("b").as<float>() = 4;
  for (const float difference : {-3.0f, 3.0f, -3.0f}) {
    runner->run();
    EXPECT_EQ(*runner->executor->fetched(0).as<float>(), difference);
  }
  runner->locals.reset();
  runner->run();
  EXPECT_EQ(*runner->executor->fetched(0).as<float>(), 0);
}

TEST_F(ExecutorTest, AsksForTheRowsOfTheBatchAndContributesThem) {
  values_["table"] = Tensor::of<float>({5, 1}, {0, 10, 20, 30, 40});
  const Value ids = graph_.input("ids", {4}, DType::kInt32);
  const Value rows = embedding_lookup(graph_.variable("table", {5, 1}), ids);
  const Training training = minimize(reduce_sum(rows), Sgd{});
  const auto runner = train(training);
  const std::int32_t batch[] = {3, 1, 3, 4};
  std::copy(std::begin(batch), std::end(batch), runner->executor->view(ids).as<std::int32_t>());
  runner->run();
  EXPECT_THAT(runner->steps->rows_asked["table"], ElementsAre(1, 3, 4));
  EXPECT_EQ(runner->executor->loss(), 110);
  // The batch looked up row 3 twice.
  EXPECT_EQ(floats(values_["table"].view()), (std::vector<float>{0, 9, 20, 28, 39}));

  runner->executor->view(ids).as<std::int32_t>()[0] = 5;
  EXPECT_THROW(runner->run(), Error);
}

// A kernel computes the ids. Their memory has room for loss, norm and fetch, but must not be reused
// for them: the ids of the next batch are written there before the caller reads these results.
TEST_F(ExecutorTest, TellsTheStoreTheNextRowsAndKeepsWhatTheStepHasComputed) {
  values_["table"] = Tensor::of<float>({5, 1}, {0, 10, 20, 30, 40});
  const Value ids = graph_.input("ids", {2, 2}, DType::kInt32);
  const Value rows = embedding_lookup(graph_.variable("table", {5, 1}), transpose(ids));
  const Value doubled = scale(rows, 2);
  const Training training =
      minimize(reduce_sum(rows), Sgd{}, {.clip_norm = 100, .learning_rate = {}, .groups = {}});
  const auto runner = train(training, {doubled});
  ASSERT_GT(runner->plan->prologue, 0u);
  ASSERT_TRUE(runner->executor->wants_next_inputs());
  const auto set = [&](const std::vector<std::int32_t>& batch) {
    std::ranges::copy(batch, runner->executor->view(ids).as<std::int32_t>());
  };
  set({3, 1, 3, 4});
  bool known = true;
  const std::function<bool()> fill_next = [&] {
    EXPECT_EQ(runner->calls.back(), "ready table");
    set({0, 2, 2, 2});
    return known;
  };
  const auto step = [&](std::int64_t number) {
    runner->executor->run({StepKind::kTrain, runner->rates, 1, {1, 0, number}, &fill_next});
  };
  step(0);
  EXPECT_THAT(runner->steps->rows_asked["table"], ElementsAre(1, 3, 4));
  EXPECT_THAT(runner->steps->next_rows_asked["table"], ElementsAre(0, 2));
  EXPECT_EQ(runner->executor->loss(), 110);
  EXPECT_FLOAT_EQ(float(runner->executor->global_norm()), std::sqrt(6.0f));
  EXPECT_EQ(floats(runner->executor->fetched(0)), (std::vector<float>{60, 60, 20, 80}));
  known = false;
  step(1);
  EXPECT_THAT(runner->steps->rows_asked["table"], ElementsAre(0, 2));
  EXPECT_TRUE(runner->steps->next_rows_asked.empty());
  EXPECT_EQ(runner->executor->loss(), 60);
}

TEST_F(ExecutorTest, WantsNoNextInputsWhereAnInputIsReadAfterTheStep) {
  values_["table"] = Tensor::of<float>({5, 1}, {0, 10, 20, 30, 40});
  const Value ids = graph_.input("ids", {4}, DType::kInt32);
  const Training training =
      minimize(reduce_sum(embedding_lookup(graph_.variable("table", {5, 1}), ids)), Sgd{});
  EXPECT_TRUE(train(training)->executor->wants_next_inputs());
  EXPECT_FALSE(train(training, {ids})->executor->wants_next_inputs());
}

TEST_F(ExecutorTest, WantsNoNextInputsWhereALocalVariableSaysTheRows) {
  values_["table"] = Tensor::of<float>({5, 1}, {0, 10, 20, 30, 40});
  const Value at = graph_.local("at", {4}, DType::kInt32);
  const Training training =
      minimize(reduce_sum(embedding_lookup(graph_.variable("table", {5, 1}), at)), Sgd{});
  EXPECT_FALSE(train(training)->executor->wants_next_inputs());
}

// In this test the input of the last remaining kernel always arrives first.
TEST_F(ExecutorTest, WhatWaitsForTheOutsideRunsInTheOrderInWhichItComes) {
  OpRegistry ops = copy_of_builtin_ops();
  Op outside;
  outside.name = "outside";
  outside.infer = [](const OpInputs& in) { return std::vector{in.types[0]}; };
  outside.no_gradient = "it comes from outside";
  outside.stateful = true;
  outside.cost = [](const Node&) { return Cost{}; };
  outside.kernel = [](const Node&, const KernelCall& call) {
    *call.outputs[0].as<float>() = *call.inputs[0].as<float>();
  };
  outside.first_to_come = [](std::span<const Node* const> nodes) { return nodes.size() - 1; };
  register_op(ops, std::move(outside));
  Graph graph(ops);
  const Value x = graph.input("x", {1});
  Training training;
  std::vector<Value> all;
  for (const char* const name : {"u", "v", "w"}) {
    values_[name] = Tensor::of<float>({1}, {1});
    Gradient gradient;
    gradient.dense = all.emplace_back(graph.apply("outside", {x}));
    training.updates.push_back({graph.variable(name, {1}), gradient, Value(), Sgd{}, 0, 0, {}});
  }
  training.loss = graph.constant(Tensor::scalar(0.0f));
  const auto runner = train(training);
  fill(runner->executor->view(x), {3});
  for (int step = 0; step < 2; ++step) {
    runner->calls.clear();
    runner->run(step);
    EXPECT_THAT(runner->calls, ElementsAre("begin", "place w", "ready w", "place v", "ready v",
                                           "place u", "ready u", "end"));
  }
  EXPECT_EQ(values_["v"].item<float>(), -5);
}

TEST_F(ExecutorTest, AVariableCanContributeToAnother) {
  values_["v"] = Tensor::of<float>({1}, {1});
  values_["w"] = Tensor::of<float>({1}, {10});
  const Value v = graph_.variable("v", {1}), w = graph_.variable("w", {1});
  Training training;
  training.loss = reduce_sum(v);
  for (const auto& [variable, other] : {std::pair{v, w}, std::pair{w, v}}) {
    Gradient gradient;
    gradient.dense = other;
    training.updates.push_back({variable, gradient, Value(), Sgd{}, 0, 0, {}});
  }
  train(training)->run();
  EXPECT_EQ(values_["v"].item<float>(), -9);
  EXPECT_EQ(values_["w"].item<float>(), 9);
}

// In either order of planning, the whole is written in place, and the part is copied from there
// before the whole is handed over.
TEST_F(ExecutorTest, AContributionCanBePartOfAnother) {
  for (const bool part_first : {false, true}) {
    Graph graph;
    values_["w"] = Tensor(DType::kFloat32, {4, 16});
    values_["v"] = Tensor(DType::kFloat32, {2, 16});
    const Value w = graph.variable("w", {4, 16}), v = graph.variable("v", {2, 16});
    const Value x = graph.input("x", {4, 16});
    const Value y = add(x, x);
    Training training;
    training.loss = reduce_sum(y);
    const auto contribute = [&](Value variable, Value contribution) {
      Gradient gradient;
      gradient.dense = contribution;
      training.updates.push_back({variable, gradient, Value(), Sgd{}, 0, 0, {}});
    };
    if (!part_first) contribute(w, y);
    contribute(v, slice(y, {1, 0}, {2, 16}));
    if (part_first) contribute(w, y);
    const auto runner = train(training);
    std::vector<float> fed(64);
    for (std::size_t i = 0; i < fed.size(); ++i) fed[i] = float(i);
    fill(runner->executor->view(x), fed);
    runner->run();
    const auto at = [&](const char* call) {
      return std::ranges::find(runner->calls, call) - runner->calls.begin();
    };
    EXPECT_LT(at("place v"), at("ready w")) << part_first;
    const auto contributed = [&](const char* variable) {
      const auto values = values_[variable].data<float>();
      return std::vector<float>(values.begin(), values.end());
    };
    std::vector<float> whole = fed;
    for (float& element : whole) element *= -2;
    EXPECT_EQ(contributed("w"), whole);
    EXPECT_EQ(contributed("v"), std::vector<float>(whole.begin() + 16, whole.begin() + 48));
  }
}

TEST_F(ExecutorTest, SeveralPlansShareTheVariables) {
  values_["w"] = Tensor::of<float>({1}, {1});
  const Value x = graph_.input("x", {1});
  const Training training = minimize(reduce_sum(mul(x, graph_.variable("w", {1}))), Sgd{});
  Graph other;
  const Value doubled = scale(other.variable("w", {1}), 2);
  const auto trainer = train(training);
  const auto reader = fetch({doubled});
  *trainer->executor->view(x).as<float>() = 0.25f;
  trainer->run();
  reader->run();
  EXPECT_EQ(*reader->executor->fetched(0).as<float>(), 1.5f);
}

TEST_F(ExecutorTest, NamesWhatIsNoInput) {
  const Value x = graph_.input("x", {1});
  const auto runner = fetch({exp(x)});
  EXPECT_THROW(runner->executor->view("y"), Error);
}

// A store whose calls each advance a manual clock by a different time.
class SlowSteps : public FakeSteps {
 public:
  SlowSteps(std::span<const VariableSpec> specs, std::map<std::string, Tensor>& values,
            ManualClock& clock)
      : FakeSteps(specs, values), clock_(clock) {}
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& s) override {
    clock_.advance(std::chrono::milliseconds(1));
    FakeSteps::begin_step(kind, rows, s);
  }
  AsyncView need(VariableId v) override {
    clock_.advance(std::chrono::milliseconds(10));
    return FakeSteps::need(v);
  }
  AsyncView place(VariableId v) override {
    clock_.advance(std::chrono::milliseconds(100));
    return FakeSteps::place(v);
  }
  void ready(VariableId v, const Contribution& c, const Event& e) override {
    clock_.advance(std::chrono::milliseconds(1000));
    FakeSteps::ready(v, c, e);
  }
  StepHandle& end_step(float scale, std::span<const RowSet> rows) override {
    clock_.advance(std::chrono::milliseconds(10000));
    return FakeSteps::end_step(scale, rows);
  }

 private:
  ManualClock& clock_;
};

TEST_F(ExecutorTest, TimeCountsWhereItWasSpent) {
  using std::chrono::milliseconds;
  const auto sim = make_device({.kind = "sim", .sim_step_ms = 700}, clock_);
  for (const char* name : {"v", "w"}) values_[name] = Tensor(DType::kFloat32, {2});
  const Value x = graph_.input("x", {2});
  const Value y = mul(mul(x, graph_.variable("v", {2})), graph_.variable("w", {2}));
  const Training training = minimize(reduce_sum(y), Sgd{});
  const Graph* graphs[] = {&graph_};
  const std::vector<VariableSpec> specs = variable_specs(graphs, &training);
  const auto plan = make_plan({&graph_, {}, &training, true, {}}, specs, *sim);
  LocalMemory locals(graph_, *sim);
  StepAccount account(clock_);
  Executor executor(*plan, std::make_unique<SlowSteps>(specs, values_, clock_), locals, *sim,
                    account);
  account.reset();
  const float rates[] = {1, 1};
  executor.run({StepKind::kTrain, rates, 1, {}});
  account.change_to(Activity::kOther);

  EXPECT_EQ(account.spent(Activity::kPull), milliseconds(1 + 2 * 10));
  EXPECT_EQ(account.spent(Activity::kPush), milliseconds(2 * 100 + 2 * 1000 + 10000));
  // Kernels are queued on the device, so some of their time passes during the store's calls.
  EXPECT_LE(account.spent(Activity::kCompute), milliseconds(700));
  EXPECT_EQ(account.spent(Activity::kOther), Duration(0));
}

}  // namespace
}  // namespace paceline
