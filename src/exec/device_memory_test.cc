// Tests plans on a device that has its own memory and queue: they give the same bits as on the
// host. Also tests stores in the host's or in a device's memory, and the events that say when such
// memory may be used.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "exec/plan_runner.h"
#include "exec/testing/fake_store.h"
#include "kernels/testing/queue_device.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::HasSubstr;
using Pace = QueueDevice::Pace;

std::vector<std::byte> bytes_of(const TensorView& view) {
  const auto* const data = static_cast<const std::byte*>(view.data);
  return {data, data + view.bytes()};
}

void fill(const TensorView& view, int step) {
  for (std::int64_t i = 0; i < view.shape.elements(); ++i) {
    const auto value = std::int32_t((i * 7 + step * 5) % 11);
    if (view.dtype == DType::kInt32) {
      view.as<std::int32_t>()[i] = value;
    } else {
      view.as<float>()[i] = 0.1f * float(value) - 0.5f;
    }
  }
}

class DeviceMemoryTest : public testing::Test {
 protected:
  using Values = std::map<std::string, Tensor>;

  // The results of some steps: fetched values, losses, norms and requested rows of each step, and
  // afterwards the shared and the local variables.
  struct Seen {
    std::vector<std::vector<std::byte>> values;
    std::vector<double> numbers;
    bool operator==(const Seen&) const = default;
  };

  std::unique_ptr<Device> host() { return make_device({.kind = "naive"}, clock_); }
  std::unique_ptr<QueueDevice> queue(Pace pace = Pace::kWhenWaitedFor) {
    return std::make_unique<QueueDevice>(host(), pace);
  }

  Values initial() {
    Values values;
    for (const VariableSpec& spec : variable_specs({&graph_pointer_, 1}, nullptr)) {
      values[spec.name] = Tensor(spec.dtype, spec.shape);
      fill(values[spec.name].view(), int(spec.name.size()));
    }
    return values;
  }

  Seen run(Device& device, const Training& training, const std::vector<Value>& fetches) {
    Values values = initial();
    PlanRunner runner({&graph_, fetches, &training, true, {}}, values, device, clock_);
    const auto feed = [&](int step) {
      for (const auto& [name, slot] : runner.plan->inputs) {
        fill(runner.executor->view(name), step);
      }
    };
    Seen seen;
    feed(0);
    for (int step = 0; step < 4; ++step) {
      const std::function<bool()> fill_next = [&] {
        feed(step + 1);
        return true;
      };
      const bool early = runner.executor->wants_next_inputs();
      runner.executor->run({StepKind::kTrain,
                            runner.rates,
                            1,
                            {.seed = 1, .task = 0, .step = step},
                            early ? &fill_next : nullptr});
      note(runner, seen);
      if (!early) feed(step + 1);
    }
    for (const auto& [name, value] : values) seen.values.push_back(bytes_of(value.view()));
    for (const auto& [name, view] : runner.locals.views()) {
      seen.values.push_back(bytes_of(runner.locals.read(name).view()));
    }
    return seen;
  }

  static void note(const PlanRunner& runner, Seen& seen) {
    for (std::size_t i = 0; i < runner.executor->fetches(); ++i) {
      seen.values.push_back(bytes_of(runner.executor->fetched(i)));
    }
    seen.numbers.push_back(runner.executor->loss());
    if (runner.executor->clips()) seen.numbers.push_back(runner.executor->global_norm());
    for (const auto& [variable, ids] : runner.steps->rows_asked) {
      seen.numbers.insert(seen.numbers.end(), ids.begin(), ids.end());
    }
  }

  void expect_the_same(const Training& training, const std::vector<Value>& fetches = {}) {
    const auto on_host = host();
    const Seen expected = run(*on_host, training, fetches);
    ASSERT_TRUE(std::isfinite(expected.numbers.back()));
    for (const Pace pace : {Pace::kAtOnce, Pace::kWhenWaitedFor}) {
      const auto device = queue(pace);
      EXPECT_EQ(run(*device, training, fetches), expected) << int(pace);
    }
  }

  Training dense_training(float clip_norm) {
    const Value h = relu(dense(graph_.input("x", {6, 5}), 7, "layer1"));
    const Value y = dense(h, 3, "layer2");
    hidden_ = h;
    return minimize(mean_squared_error(y, graph_.input("y", {6, 3})), Sgd{},
                    {.clip_norm = clip_norm, .learning_rate = {}, .groups = {}});
  }

  // A training plan on a device, with the steps of the store that `make` returns.
  struct Job {
    using MakeSteps =
        std::function<std::unique_ptr<StoreSteps>(std::span<const VariableSpec>, Values&)>;
    Job(DeviceMemoryTest& test, const Training& training, Device& device, const MakeSteps& make)
        : values(test.initial()),
          specs(variable_specs({&test.graph_pointer_, 1}, &training)),
          plan(make_plan({&test.graph_, {}, &training, true, {}}, specs, device)),
          locals(test.graph_, device),
          account(test.clock_),
          executor(*plan, make(specs, values), locals, device, account) {}
    void step() {
      const std::vector<float> rates(specs.size(), 1.0f);
      executor.run({StepKind::kTrain, rates, 1, {}});
    }
    Values values;
    const std::vector<VariableSpec> specs;
    const std::unique_ptr<Plan> plan;
    LocalMemory locals;
    StepAccount account;
    Executor executor;
  };

  ManualClock clock_;
  Graph graph_;
  const Graph* const graph_pointer_ = &graph_;
  Value hidden_;
};

TEST_F(DeviceMemoryTest, ADenseNetTrainsBitForBit) {
  const Training training = dense_training(0);
  expect_the_same(training, {hidden_, graph_.input("unused", {2}), graph_.variable("fixed", {3}),
                             graph_.constant(Tensor::of<float>({2}, {1, 2}))});
}

TEST_F(DeviceMemoryTest, AClippedOneToo) { expect_the_same(dense_training(0.01f)); }

TEST_F(DeviceMemoryTest, RowsAndStateOfALanguageModelTrainBitForBit) {
  const Value ids = graph_.input("ids", {4, 5}, DType::kInt32);
  const Value rows = embedding_lookup(graph_.variable("table", {50, 8}), ids);
  const Value h = graph_.local("h", {5, 8}), c = graph_.local("c", {5, 8});
  const LstmOutput out =
      lstm(dropout(rows, 0.5), h, c, graph_.variable("w", {16, 32}), graph_.variable("b", {32}));
  graph_.assign(h, out.h);
  graph_.assign(c, out.c);
  const Value logits = dense(reshape(out.outputs, {20, 8}), 50, "softmax");
  const Value losses = softmax_cross_entropy(logits, reshape(ids, {20}));
  for (const float clip_norm : {0.0f, 0.1f}) {
    expect_the_same(minimize(reduce_sum(losses), Sgd{},
                             {.clip_norm = clip_norm, .learning_rate = {}, .groups = {}}),
                    {out.outputs, h});
  }
}

TEST_F(DeviceMemoryTest, ALocalIsNotFedThere) {
  const Value h = graph_.local("h", {2});
  Values values;
  const auto device = queue();
  PlanRunner runner({&graph_, {square(h)}, nullptr, true, {}}, values, *device, clock_);
  try {
    runner.executor->view("h");
    ADD_FAILURE() << "the host does not reach it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), HasSubstr("h lies in the memory of queue:0"));
  }
}

TEST_F(DeviceMemoryTest, LocalsAreReadWrittenAndReset) {
  graph_.local("h", {2});
  const auto device = queue();
  LocalMemory locals(graph_, *device);
  EXPECT_EQ(locals.read("h").data<float>()[1], 0);
  locals.write("h", Tensor::of<float>({2}, {3, 4}));
  EXPECT_EQ(locals.read("h").data<float>()[1], 4);
  locals.reset();
  EXPECT_EQ(locals.read("h").data<float>()[1], 0);
}

// A store that computes the norm itself. It notes how many operations were left in the device's
// queue when end_step was called.
class NormSteps : public FakeSteps {
 public:
  NormSteps(std::span<const VariableSpec> specs, std::map<std::string, Tensor>& values,
            QueueDevice& device)
      : FakeSteps(specs, values), device_(device) {}
  NormBy norm_by() const override { return NormBy::kStore; }
  StepHandle& end_step(float scale, std::span<const RowSet> rows) override {
    left = device_.pushed() - device_.done();
    return FakeSteps::end_step(scale, rows);
  }
  std::uint64_t left = 0;

 private:
  QueueDevice& device_;
};

TEST_F(DeviceMemoryTest, AStoreThatComputesTheNormEndsTheStepWhileTheDeviceComputes) {
  const Training training = dense_training(0.01f);
  const auto device = queue();
  const NormSteps* steps = nullptr;
  Job job(*this, training, *device, [&](std::span<const VariableSpec> specs, Values& values) {
    auto made = std::make_unique<NormSteps>(specs, values, *device);
    steps = made.get();
    return made;
  });
  job.step();
  EXPECT_GT(steps->left, 0U) << "the results are on their way";
  EXPECT_EQ(device->done(), device->pushed());
  EXPECT_GT(job.executor.loss(), 0);
}

// A store that reads a contribution as soon as ready() is called, without a wait for the event.
class HastySteps : public FakeSteps {
 public:
  using FakeSteps::FakeSteps;
  void ready(VariableId variable, const Contribution& contribution, const Event&) override {
    FakeSteps::ready(variable, contribution, {});
  }
};

TEST_F(DeviceMemoryTest, AStoreThatDoesNotWaitIsCaught) {
  const Training training = dense_training(0);
  const auto device = queue();
  Job job(*this, training, *device, [](std::span<const VariableSpec> specs, Values& values) {
    return std::make_unique<HastySteps>(specs, values);
  });
  try {
    job.step();
    ADD_FAILURE() << "nobody saw it";
  } catch (const Error& error) {
    // The store also changes values while they are on their way to the device.
    EXPECT_THAT(error.what(), HasSubstr("changed before"));
  }
  for (const auto& [name, value] : job.values) {
    EXPECT_TRUE(std::isnan(value.data<float>()[0]))
        << name << ": a contribution that was not there";
  }
}

// A store whose values lie in `space`. It adds up the tickets of its events that were waited for.
class FarSteps : public FakeSteps, private Event::Source {
 public:
  FarSteps(std::span<const VariableSpec> specs, std::map<std::string, Tensor>& values,
           MemorySpace space)
      : FakeSteps(specs, values), space_(space) {}
  MemorySpace space() const override { return space_; }
  AsyncView need(VariableId variable) override {
    return {FakeSteps::need(variable).view, {*this, 1}};
  }
  AsyncView place(VariableId variable) override {
    return {FakeSteps::place(variable).view, {*this, 10}};
  }
  std::uint64_t waited = 0;

 private:
  void synchronize(std::uint64_t ticket) override { waited += ticket; }
  const MemorySpace space_;
};

TEST_F(DeviceMemoryTest, TheDeviceWaitsForTheStoresEvents) {
  const Training training = dense_training(0);
  const auto device = host();
  const FarSteps* steps = nullptr;
  Job job(*this, training, *device, [&](std::span<const VariableSpec> specs, Values& values) {
    auto made = std::make_unique<FarSteps>(specs, values, MemorySpace());
    steps = made.get();
    return made;
  });
  job.step();
  // Four variables, each needed and placed once.
  EXPECT_EQ(steps->waited, 44u);
}

TEST_F(DeviceMemoryTest, AStoreOfAnotherDeviceIsRefused) {
  const Training training = dense_training(0);
  const auto device = host(), other = std::unique_ptr<Device>(queue());
  const auto make = [&] {
    const Job job(*this, training, *device,
                  [&](std::span<const VariableSpec> specs, Values& values) {
                    return std::make_unique<FarSteps>(specs, values, other->space());
                  });
  };
  EXPECT_THROW(make(), Error);
}

}  // namespace
}  // namespace paceline
