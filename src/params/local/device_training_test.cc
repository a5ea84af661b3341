// Tests that a device with memory and a queue of its own trains on the local store as the host
// does, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/philox.h"
#include "exec/executor.h"
#include "kernels/testing/queue_device.h"
#include "paceline/ops.h"
#include "params/local/local_store.h"

namespace paceline {
namespace {

using Pace = QueueDevice::Pace;

void fill(const TensorView& view, std::uint64_t key, std::int64_t most) {
  for (std::int64_t i = 0; i < view.shape.elements(); ++i) {
    const std::uint32_t drawn = philox(key, std::uint64_t(i), 0)[0];
    if (view.dtype == DType::kInt32) {
      view.as<std::int32_t>()[i] =
          std::int32_t(drawn % std::max<std::uint32_t>(1, std::uint32_t(most)));
    } else {
      view.as<float>()[i] = 0.5f * to_unit_float(drawn) - 0.25f;
    }
  }
}

// The results of a training.
struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> tensors;  // variables with their slots
};

class DeviceTrainingTest : public testing::Test {
 protected:
  static constexpr std::int64_t kWords = 40;

  std::unique_ptr<Device> cpu() { return make_device({.kind = "cpu", .threads = 2}, clock_); }

  Trained train(Device& device, const Training& training, int steps) {
    const Graph* const graph = &training.graph();
    StepAccount account(clock_);
    const auto store = make_local_store(variable_specs({&graph, 1}, &training), nullptr, &account);
    const std::span<const VariableSpec> specs = store->variables();
    std::vector<VariableState> initial;
    std::vector<VariableId> all;
    std::vector<float> rates;
    for (const VariableSpec& spec : specs) {
      const auto id = VariableId(all.size());
      initial.push_back({id, Tensor(spec.dtype, spec.shape), {}});
      fill(initial.back().value.view(), std::uint64_t(id), 0);
      all.push_back(id);
      rates.push_back(spec.rule.learning_rate());
    }
    store->write(std::move(initial), 0);
    LocalMemory locals(*graph, device);
    const auto plan = make_plan({graph, {}, &training, true, {}}, specs, device);
    Executor executor(*plan, store->bind(plan->binding, plan->clipped()), locals, device, account);
    Trained trained;
    for (int step = 0; step < steps; ++step) {
      for (const auto& [name, slot] : plan->inputs) {
        fill(executor.view(name), 100 + std::uint64_t(step), kWords);
      }
      executor.run({StepKind::kTrain, rates, 1, {.seed = 1, .task = 0, .step = step}});
      trained.losses.push_back(executor.loss());
    }
    for (VariableState& state : store->read(all)) {
      trained.tensors.push_back(state.value);
      for (Tensor& slot : state.slots) trained.tensors.push_back(slot);
    }
    return trained;
  }

  void expect_the_same(const Training& training) {
    constexpr int kSteps = 5;
    const auto host = cpu();
    const Trained expected = train(*host, training, kSteps);
    ASSERT_NE(expected.losses.front(), expected.losses.back());
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(std::make_unique<QueueDevice>(cpu(), Pace::kAtOnce));
    devices.push_back(std::make_unique<QueueDevice>(cpu(), Pace::kWhenWaitedFor));
    for (const double copy_gbps : {0.0, 10.0}) {
      devices.push_back(make_device({.kind = "sim",
                                     .threads = 2,
                                     .sim_step_ms = 0.1,
                                     .sim_copy_gbps = copy_gbps,
                                     .sim_compute = true},
                                    clock_));
    }
    for (const auto& device : devices) {
      const Trained got = train(*device, training, kSteps);
      EXPECT_EQ(got.losses, expected.losses);
      ASSERT_EQ(got.tensors.size(), expected.tensors.size());
      for (std::size_t i = 0; i < got.tensors.size(); ++i) {
        EXPECT_EQ(std::memcmp(got.tensors[i].raw(), expected.tensors[i].raw(),
                              expected.tensors[i].bytes()),
                  0)
            << "tensor " << i;
      }
    }
  }

  RealClock clock_;
  Graph graph_;
};

TEST_F(DeviceTrainingTest, ADenseNet) {
  const Value h = relu(dense(graph_.input("x", {16, 8}), 32, "layer1"));
  const Value loss = mean_squared_error(dense(h, 4, "layer2"), graph_.input("y", {16, 4}));
  expect_the_same(minimize(loss, Adam{0.01f}));
}

TEST_F(DeviceTrainingTest, ADenseNetWithAClippedGradient) {
  const Value h = relu(dense(graph_.input("x", {16, 8}), 32, "layer1"));
  const Value loss = mean_squared_error(dense(h, 4, "layer2"), graph_.input("y", {16, 4}));
  expect_the_same(
      minimize(loss, Momentum{0.1f}, {.clip_norm = 0.05f, .learning_rate = {}, .groups = {}}));
}

TEST_F(DeviceTrainingTest, ALanguageModelWithRowsAndState) {
  const Value ids = graph_.input("ids", {4, 5}, DType::kInt32);
  const Value rows = embedding_lookup(graph_.variable("table", {kWords, 8}), ids);
  const Value h = graph_.local("h", {5, 8}), c = graph_.local("c", {5, 8});
  const LstmOutput out =
      lstm(dropout(rows, 0.5), h, c, graph_.variable("w", {16, 32}), graph_.variable("b", {32}));
  graph_.assign(h, out.h);
  graph_.assign(c, out.c);
  const Value logits = dense(reshape(out.outputs, {20, 8}), kWords, "softmax");
  const Value losses = softmax_cross_entropy(logits, reshape(ids, {20}));
  expect_the_same(minimize(reduce_sum(losses), Adagrad{0.1f}));
  expect_the_same(minimize(reduce_sum(losses), Sgd{0.5f},
                           {.clip_norm = 0.5f, .learning_rate = {}, .groups = {}}));
}

}  // namespace
}  // namespace paceline
