// Tests that plans, executor and local store together train small models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/philox.h"
#include "exec/executor.h"
#include "paceline/ops.h"
#include "params/local/local_store.h"

namespace paceline {
namespace {

// Trains on one batch that never changes.
class Trainer {
 public:
  explicit Trainer(const Training& training, int threads = 1, bool stream = false,
                   const RewriteOptions& rewrite = {})
      : device_(make_device({.kind = "cpu", .threads = threads}, clock_)),
        pool_(threads),
        locals_(training.graph(), *device_) {
    const Graph* graphs[] = {&training.graph()};
    store_ = make_local_store(variable_specs(graphs, &training), &pool_, nullptr);
    initialise(training.graph());
    plan_ = make_plan({&training.graph(), {}, &training, true, rewrite, stream},
                      store_->variables(), *device_);
    executor_ = std::make_unique<Executor>(*plan_, store_->bind(plan_->binding, plan_->clip_norm),
                                           locals_, *device_, account_);
    for (const VariableSpec& spec : store_->variables()) {
      rates_.push_back(spec.rule.learning_rate());
    }
  }

  TensorView input(const char* name) { return executor_->view(name); }
  void fill(const char* name) {
    const TensorView view = input(name);
    for (std::int64_t i = 0; i < view.shape.elements(); ++i) {
      view.as<float>()[i] = to_unit_float(philox(5, std::uint64_t(i), 0)[0]) - 0.5f;
    }
  }
  std::vector<double> losses(int steps) {
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      StepHandle& handle =
          executor_->run({StepKind::kTrain, rates_, 1, {.seed = 1, .task = 0, .step = i}});
      EXPECT_EQ(handle.global_step(), store_->global_step());
      losses.push_back(executor_->loss());
    }
    return losses;
  }
  ParameterStore& store() { return *store_; }
  const Plan& plan() const { return *plan_; }
  Device& device() { return *device_; }
  StepAccount& account() { return account_; }
  Executor& executor() { return *executor_; }

 private:
  void initialise(const Graph& graph) {
    const auto specs = store_->variables();
    std::vector<VariableState> states;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      Tensor value(specs[i].dtype, specs[i].shape);
      const Initializer initializer =
          specs[i].shape.rank() > 1 ? Initializer::glorot_uniform() : Initializer::zeros();
      initializer.fill(value.data<float>(), value.shape(), 3, specs[i].name);
      states.push_back({VariableId(i), value, {}});
    }
    store_->write(states, 0);
    EXPECT_GT(graph.nodes().size(), 0u);
  }

  RealClock clock_;
  std::unique_ptr<Device> device_;
  ThreadPool pool_;
  LocalMemory locals_;
  StepAccount account_{clock_};
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Executor> executor_;
  std::vector<float> rates_;
};

Value dense_loss(Graph& graph) {
  const Value h = relu(dense(graph.input("x", {16, 8}), 32, "layer1"));
  return mean_squared_error(dense(h, 4, "layer2"), graph.input("y", {16, 4}));
}

std::vector<double> dense_losses(const Rule& rule, const MinimizeOptions& options, int steps,
                                 int threads = 1) {
  Graph graph;
  const Training training = minimize(dense_loss(graph), rule, options);
  Trainer trainer(training, threads);
  trainer.fill("x");
  trainer.fill("y");
  return trainer.losses(steps);
}

TEST(LocalTraining, ADenseNetLearnsWithEveryOptimizer) {
  const Rule rules[] = {Sgd{0.2f},   Momentum{0.05f}, Momentum{0.05f, 0.9f, true},
                        Adam{0.01f}, Adagrad{0.1f},   Rmsprop{0.005f}};
  for (const Rule& rule : rules) {
    const std::vector<double> losses = dense_losses(rule, {}, 60);
    EXPECT_LT(losses.back(), 0.5 * losses.front()) << rule.name();
  }
}

// FTRL computes a weight from its sums alone, so it forgets the first weights. This suits a linear
// model, whose first weights may all be equal.
TEST(LocalTraining, ALinearModelLearnsWithFtrl) {
  Graph graph;
  const Value h = dense(graph.input("x", {16, 8}), 4, "layer");
  const Training training =
      minimize(mean_squared_error(h, graph.input("y", {16, 4})), Ftrl{0.2f, 0.0001f});
  Trainer trainer(training);
  trainer.fill("x");
  trainer.fill("y");
  const std::vector<double> losses = trainer.losses(60);
  EXPECT_LT(losses.back(), 0.5 * losses.front());
}

TEST(LocalTraining, OneThreadIsRepeatableBitForBit) {
  const MinimizeOptions options = {.clip_norm = 0.5f, .learning_rate = {}, .groups = {}};
  const std::vector<double> losses = dense_losses(Adam{0.01f}, options, 20);
  EXPECT_EQ(losses, dense_losses(Adam{0.01f}, options, 20));
  const std::vector<double> threaded = dense_losses(Adam{0.01f}, options, 20, 2);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(threaded[i], losses[i], 1e-4);
}

std::vector<std::string> streamed(const Trainer& trainer, std::span<const VariableSpec> specs) {
  std::vector<std::string> names;
  for (const PlanBinding::Use& use : trainer.plan().binding.uses) {
    if (use.streamed) names.push_back(specs[std::size_t(use.variable)].name);
  }
  return names;
}

// One hidden layer is so large that a kernel could hand over its gradient in panels.
void expect_streams_bit_for_bit(const RewriteOptions& rewrite) {
  Graph graph;
  const Value x = dense(graph.input("x", {3, 2048}), 2100, "layer1");
  const Training training =
      minimize(mean_squared_error(dense(x, 4, "layer2"), graph.input("y", {3, 4})), Adam{0.01f});
  for (const int threads : {1, 3}) {
    Trainer fused(training, threads, true, rewrite), whole(training, threads, false, rewrite);
    EXPECT_EQ(streamed(fused, fused.store().variables()), std::vector<std::string>{"layer1/w"});
    EXPECT_TRUE(streamed(whole, whole.store().variables()).empty());
    for (Trainer* trainer : {&fused, &whole}) {
      trainer->fill("x");
      trainer->fill("y");
    }
    EXPECT_EQ(fused.losses(3), whole.losses(3));
    const VariableId all[] = {0, 1, 2, 3};
    const auto states = fused.store().read(all), others = whole.store().read(all);
    for (std::size_t i = 0; i < states.size(); ++i) {
      EXPECT_EQ(std::memcmp(states[i].value.raw(), others[i].value.raw(), states[i].value.bytes()),
                0);
    }
  }
}

TEST(LocalTraining, AnUpdateWhileTheGradientIsComputedChangesNoBit) {
  expect_streams_bit_for_bit({});
}

TEST(LocalTraining, NorDoesOneWhileAGradientOfBfloat16OperandsIsComputed) {
  expect_streams_bit_for_bit({.bfloat16_products = true});
}

// Kernels could hand over each half of the gradient in panels, but the store wants the gradient
// whole.
TEST(LocalTraining, AGradientOfSeveralKernelsIsNotStreamed) {
  Graph graph;
  const std::vector<Value> halves = split(graph.variable("w", {2 * 2048, 2100}), 2, 0);
  const Value y = add(matmul(graph.input("x", {3, 2048}), halves[0]),
                      matmul(graph.input("y", {3, 2048}), halves[1]));
  const Training training = minimize(reduce_mean(square(y)), Sgd{0.1f});
  Trainer fused(training, 1, true), whole(training, 1, false);
  for (Trainer* trainer : {&fused, &whole}) {
    EXPECT_TRUE(streamed(*trainer, trainer->store().variables()).empty());
    EXPECT_TRUE(std::ranges::none_of(trainer->plan().kernels, [](const Plan::KernelUse& use) {
      return use.node->op().name == "concat";
    }));
    trainer->fill("x");
    trainer->fill("y");
  }
  EXPECT_EQ(fused.losses(3), whole.losses(3));
}

TEST(LocalTraining, WhatTheClippingNeedsAsAWholeIsNotStreamed) {
  Graph graph;
  const Value h = dense(graph.input("x", {3, 2048}), 2100, "layer1");
  const Training training = minimize(reduce_mean(square(h)), Adam{0.01f},
                                     {.clip_norm = 1, .learning_rate = {}, .groups = {}});
  const Trainer trainer(training, 1, true);
  EXPECT_FALSE(std::ranges::any_of(trainer.plan().binding.uses, &PlanBinding::Use::streamed));
}

// Clipping with a norm that is never reached gives the same numbers, applied at the end of the
// step.
TEST(LocalTraining, AWideClipChangesNothingAndANarrowOneSlows) {
  const std::vector<double> free = dense_losses(Sgd{0.2f}, {}, 20);
  const auto clipped = [](float norm) {
    return dense_losses(Sgd{0.2f}, {.clip_norm = norm, .learning_rate = {}, .groups = {}}, 20);
  };
  EXPECT_EQ(clipped(1e6f), free);
  const std::vector<double> slow = clipped(0.01f);
  EXPECT_GT(slow.back(), free.back());
  EXPECT_LT(slow.back(), slow.front());
}

TEST(LocalTraining, RowsTrainAsTheWholeTableWould) {
  const auto losses_of = [](bool whole) {
    Graph graph;
    const Value ids = graph.input("ids", {6}, DType::kInt32);
    Value table = graph.variable("table", {20, 4});
    // Because of this op, the table's gradient is dense.
    if (whole) table = scale(table, 1);
    const Value h = dense(embedding_lookup(table, ids), 3, "out");
    const Training training =
        minimize(reduce_mean(square(sub(h, graph.input("y", {6, 3})))), Sgd{0.3f});
    EXPECT_EQ(training.updates[0].contribution.sparse(), !whole);
    Trainer trainer(training);
    trainer.fill("y");
    const std::int32_t batch[] = {3, 17, 3, 0, 9, 17};
    std::memcpy(trainer.input("ids").data, batch, sizeof(batch));
    return trainer.losses(30);
  };
  const std::vector<double> rows = losses_of(false), whole = losses_of(true);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(rows[i], whole[i], 1e-6) << i;
  EXPECT_LT(rows.back(), rows.front());
}

TEST(LocalTraining, AnotherGraphSeesWhatWasTrained) {
  Graph graph;
  const Training training = minimize(dense_loss(graph), Adam{0.01f});
  Trainer trainer(training);
  trainer.fill("x");
  trainer.fill("y");

  Graph one;  // the same model for one example
  const Value h = relu(dense(one.input("x", {1, 8}), 32, "layer1"));
  const Value loss = mean_squared_error(dense(h, 4, "layer2"), one.input("y", {1, 4}));
  const auto plan =
      make_plan({&one, {loss}, nullptr, true, {}}, trainer.store().variables(), trainer.device());
  LocalMemory locals(one, trainer.device());
  Executor executor(*plan, trainer.store().bind(plan->binding, 0), locals, trainer.device(),
                    trainer.account());
  const auto evaluate = [&] {
    std::memcpy(executor.view("x").data, trainer.input("x").data, 8 * sizeof(float));
    std::memcpy(executor.view("y").data, trainer.input("y").data, 4 * sizeof(float));
    executor.run({StepKind::kEvaluate, {}, 0, {}});
    return *executor.fetched(0).as<float>();
  };
  const float before = evaluate();
  trainer.losses(100);
  EXPECT_LT(evaluate(), 0.5f * before);
  EXPECT_EQ(trainer.store().global_step(), 100);
}

}  // namespace
}  // namespace paceline
