// Tests steps on parts of a batch, whose kernels add their sums to those of the other parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "exec/testing/fake_store.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::FloatNear;
using testing::Pointwise;

/// An exchange for parts that make their steps one after the other, in several passes. A step adds
/// the sums that the other parts gave last; after some passes, these are the sums of the whole
/// batch.
class PassedSums : public SumExchange {
 public:
  using Numbers = std::vector<std::vector<double>>;  // by call of add_up

  void begin(const std::vector<Numbers>& of_all, std::size_t self) {
    of_all_ = &of_all;
    self_ = self;
    given.clear();
  }
  void add_up(std::span<double> sums) override {
    const std::size_t call = given.size();
    given.emplace_back(sums.begin(), sums.end());
    for (std::size_t part = 0; part < of_all_->size(); ++part) {
      if (part == self_ || (*of_all_)[part].size() <= call) continue;
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += (*of_all_)[part][call][i];
    }
  }
  Numbers given;

 private:
  const std::vector<Numbers>* of_all_ = nullptr;
  std::size_t self_ = 0;
};

class ExchangingSteps : public FakeSteps {
 public:
  using FakeSteps::FakeSteps;
  SumExchange* exchange() override { return with; }
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override {
    StepHandle& handle = FakeSteps::end_step(clip_scale, next_rows);
    if (ends_to_repeat-- > 0) throw RepeatStep();
    return handle;
  }
  SumExchange* with = nullptr;
  int ends_to_repeat = 0;
};

/// A part of a batch, rows [first, first + count), on which a graph with a layer of batch norm
/// trains.
class Part {
 public:
  Part(const char* device, std::int64_t first, std::int64_t count) : count(count) {
    x_ = graph_.input("x", {count, 2, 2, 2});
    const Value y = batch_norm(x_, "norm");
    const Value weighted = mul(y, mul(x_, x_));
    training_ = minimize(reduce_mean(mul(weighted, square(weighted))), Sgd{1});
    const Graph* graphs[] = {&graph_};
    specs_ = variable_specs(graphs, &*training_);
    device_ = make_device({.kind = device, .threads = 1}, clock_);
    locals_.emplace(graph_, *device_);
    plan_ = make_plan({&graph_, {y}, &*training_, true, {}}, specs_, *device_);
    for (const VariableSpec& spec : specs_) {
      values[spec.name] = Tensor(spec.dtype, spec.shape);
    }
    auto made = std::make_unique<ExchangingSteps>(specs_, values, &calls);
    steps = made.get();
    executor_.emplace(*plan_, std::move(made), *locals_, *device_, account_);
    const TensorView x = executor_->view("x");
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
      x.as<float>()[i] = 3 + float(std::sin(double(first * 8 + i) * 1.3));
    }
  }
  void run() {
    for (auto& [name, value] : values) std::ranges::fill(value.data<float>(), 1.0f);
    const std::vector<float> rates(specs_.size(), 1.0f);
    executor_->run({StepKind::kTrain, rates, count, {}});
  }
  std::vector<float> y() const {
    const TensorView view = executor_->fetched(0);
    return {view.as<float>(), view.as<float>() + view.shape.elements()};
  }
  double loss() const { return executor_->loss(); }

  const std::int64_t count;
  std::map<std::string, Tensor> values;
  std::vector<std::string> calls;
  ExchangingSteps* steps = nullptr;

 private:
  RealClock clock_;
  StepAccount account_{clock_};
  Graph graph_;
  Value x_;
  std::optional<Training> training_;
  std::vector<VariableSpec> specs_;
  std::unique_ptr<Device> device_;
  std::optional<LocalMemory> locals_;
  std::unique_ptr<Plan> plan_;
  std::optional<Executor> executor_;
};

class Exchange : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Devices, Exchange, testing::Values("naive", "cpu"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(Exchange, PartsOfABatchHaveTheNormAndTheGradientsOfTheWhole) {
  Part whole(GetParam(), 0, 8);
  whole.run();
  Part first(GetParam(), 0, 5), second(GetParam(), 5, 3);
  std::vector<PassedSums::Numbers> given(2);
  PassedSums sums;
  first.steps->with = second.steps->with = &sums;
  for (int pass = 0; pass < 6; ++pass) {
    for (auto* part : {&first, &second}) {
      const std::size_t self = part == &first ? 0 : 1;
      sums.begin(given, self);
      part->run();
      given[self] = sums.given;
    }
  }
  std::vector<float> y = first.y();
  const std::vector<float> rest = second.y();
  y.insert(y.end(), rest.begin(), rest.end());
  EXPECT_THAT(y, Pointwise(FloatNear(1e-5f), whole.y()));
  EXPECT_NEAR((5 * first.loss() + 3 * second.loss()) / 8, whole.loss(), 1e-5 * whole.loss());
  for (const auto& [name, value] : whole.values) {
    for (std::size_t i = 0; i < value.data<float>().size(); ++i) {
      const double of_parts = (5 * double(first.values.at(name).data<float>()[i]) +
                               3 * double(second.values.at(name).data<float>()[i])) /
                              8;
      EXPECT_NEAR(of_parts, double(value.data<float>()[i]), 1e-3) << name << " " << i;
    }
  }
}

/// Throws RepeatStep in one call of add_up: number `in_call`, counted from 0.
class RepeatingOnce : public SumExchange {
 public:
  explicit RepeatingOnce(int in_call) : in_call_(in_call) {}
  void add_up(std::span<double>) override {
    if (calls_++ == in_call_) throw RepeatStep();
  }

 private:
  const int in_call_;
  int calls_ = 0;
};

TEST_P(Exchange, AStepIsMadeAgainFromItsBeginningWhenTheStoreSays) {
  Part once(GetParam(), 0, 4);
  once.run();
  Part again(GetParam(), 0, 4);
  RepeatingOnce exchange(1);
  again.steps->with = &exchange;
  again.run();
  EXPECT_EQ(again.y(), once.y());
  EXPECT_EQ(std::ranges::count(again.calls, "begin"), 2);
  EXPECT_EQ(std::ranges::count(again.calls, "end"), 1);
  again.calls.clear();
  again.steps->ends_to_repeat = 2;
  again.run();
  EXPECT_EQ(std::ranges::count(again.calls, "begin"), 3);
}

}  // namespace
}  // namespace paceline
