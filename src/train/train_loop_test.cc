#include "train/train_loop.h"

#include <gtest/gtest.h>

#include "paceline/ops.h"
#include "train/learning_rates.h"

namespace paceline {
namespace {

using std::chrono::milliseconds;

/// The time of each part of a step, on a clock that only the test advances.
struct Delays {
  Duration input{0}, kernel{0}, pull{0}, push{0}, rule{0}, global_step{0}, transfer{0};
};

/// A store with one variable, whose link and rule take the given delays.
class SlowStore : public ParameterStore, public StoreSteps, public StepHandle {
 public:
  SlowStore(std::vector<VariableSpec> specs, ManualClock& clock, StepAccount& account,
            const Delays& delays)
      : specs_(std::move(specs)),
        value_(DType::kFloat32, specs_[0].shape),
        gradient_(DType::kFloat32, specs_[0].shape),
        clock_(clock),
        account_(account),
        delays_(delays) {}

  std::span<const VariableSpec> variables() const override { return specs_; }
  std::unique_ptr<StoreSteps> bind(const PlanBinding&, float) override {
    return std::make_unique<Forward>(*this);
  }
  void write(std::vector<VariableState>, std::int64_t) override {}
  bool initialised() const override { return true; }
  std::vector<VariableState> read(std::span<const VariableId>) override { return {}; }
  std::int64_t global_step() const override { return steps_; }
  StoreAccount account() const override { return {.transfer = steps_ * delays_.transfer}; }

  void begin_step(StepKind, std::span<const RowSet>, const StepScalars& scalars) override {
    learning_rate = scalars.learning_rates[0];
  }
  AsyncView need(VariableId) override {
    clock_.advance(delays_.pull);
    return value_.view();
  }
  AsyncView place(VariableId) override { return gradient_.view(); }
  void ready(VariableId, const Contribution&, const Event&) override {
    clock_.advance(delays_.push);
    AccountScope apply(account_, Activity::kApply);
    clock_.advance(delays_.rule);
  }
  StepHandle& end_step(float, std::span<const RowSet>) override {
    ++steps_;
    return *this;
  }
  std::int64_t global_step() override {
    clock_.advance(delays_.global_step);
    return steps_;
  }

  float learning_rate = 0;

 private:
  /// Steps that an executor can own. They forward all calls to the store.
  class Forward : public StoreSteps {
   public:
    explicit Forward(SlowStore& store) : store_(store) {}
    void begin_step(StepKind kind, std::span<const RowSet> rows,
                    const StepScalars& scalars) override {
      store_.begin_step(kind, rows, scalars);
    }
    AsyncView need(VariableId v) override { return store_.need(v); }
    AsyncView place(VariableId v) override { return store_.place(v); }
    void ready(VariableId v, const Contribution& c, const Event& e) override {
      store_.ready(v, c, e);
    }
    StepHandle& end_step(float scale, std::span<const RowSet> next) override {
      return store_.end_step(scale, next);
    }

   private:
    SlowStore& store_;
  };

  std::vector<VariableSpec> specs_;
  Tensor value_, gradient_;
  ManualClock& clock_;
  StepAccount& account_;
  const Delays& delays_;
  std::int64_t steps_ = 0;
};

class TrainLoopTest : public ::testing::Test {
 protected:
  TrainLoopTest() : ops_(copy_of_builtin_ops()), graph_(with_slow_op(ops_)) {
    x_ = graph_.input("x", {4});
    const Value w = graph_.variable("w", {4}, Initializer::constant(1));
    const Value slow = graph_.apply("slow", {x_});
    training_ = minimize(mean_squared_error(mul(slow, w), x_), Sgd{.learning_rate = 0.5f},
                         {.learning_rate = Schedule::staircase(0.1, 2)});
    const Graph* graphs[] = {&graph_};
    const auto specs = variable_specs(graphs, &training_);
    device_ = make_device({.kind = "cpu"}, clock_);
    store_ = std::make_unique<SlowStore>(specs, clock_, account_, delays_);
    snapshot_ = std::make_unique<VariableSnapshot>(*store_);
    plans_ = std::make_unique<PlanSet>(
        PlanSet::Parts{*store_, *device_, *snapshot_, account_, account_});
    TrainPlans& plans = plans_->make_train_plans(training_, {}, {1, 1});
    rates_ = std::make_unique<LearningRates>(store_->variables(), &training_);
    loop_ = std::make_unique<TrainLoop>(TrainLoop::Parts{.trainings = {{{&plans}, *rates_}},
                                                         .store = *store_,
                                                         .account = account_,
                                                         .meter = meter_,
                                                         .normals = normals_});
  }

  OpRegistry& with_slow_op(OpRegistry& ops) {
    Op op;
    op.name = "slow";
    op.infer = [](const OpInputs& in) { return std::vector<ValueType>{in.types[0]}; };
    op.no_gradient = "it is for tests";
    op.cost = [](const Node&) { return Cost{}; };
    op.kernel = [this](const Node&, const KernelCall& call) {
      clock_.advance(delays_.kernel);
      std::fill_n(call.outputs[0].as<float>(), 4, 2.0f);
    };
    op.stateful = true;
    register_op(ops, std::move(op));
    return ops;
  }

  void run(int steps) {
    meter_.start();
    for (int i = 0; i < steps; ++i) {
      EXPECT_TRUE(loop_->step([&](Feed& feed) {
        clock_.advance(delays_.input);
        feed.normal(x_);
      }));
      loop_->end_step();
    }
  }

  /// Returns the seconds of all steps that the report gives to each activity.
  std::map<std::string, double> seconds() const {
    const TaskReport report = meter_.report("worker:0");
    std::map<std::string, double> seconds;
    for (const auto& [name, share] : report.share) {
      if (share > 0) seconds[name] = share * *report.seconds;
    }
    return seconds;
  }

  /// Expects that one activity takes all of the time.
  void expect_only(const std::string& activity, double expected) const {
    const auto found = seconds();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found.begin()->first, activity);
    EXPECT_DOUBLE_EQ(found.begin()->second, expected);
  }

  Delays delays_;
  ManualClock clock_;
  StepAccount account_{clock_};
  StepMeter meter_{account_, "examples"};
  std::shared_ptr<const InputNormals> normals_ = std::make_shared<InputNormals>(0, 0);
  OpRegistry ops_;
  Graph graph_;
  Value x_;
  Training training_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<SlowStore> store_;
  std::unique_ptr<VariableSnapshot> snapshot_;
  std::unique_ptr<PlanSet> plans_;
  std::unique_ptr<LearningRates> rates_;
  std::unique_ptr<TrainLoop> loop_;
};

TEST_F(TrainLoopTest, ASlowInputIsInput) {
  delays_.input = milliseconds(7);
  run(5);
  expect_only("input", 0.035);
}

TEST_F(TrainLoopTest, ASlowKernelIsCompute) {
  delays_.kernel = milliseconds(7);
  run(5);
  expect_only("compute", 0.035);
}

TEST_F(TrainLoopTest, ASlowLinkIsPullOnTheWayIn) {
  delays_.pull = milliseconds(7);
  run(5);
  expect_only("pull", 0.035);
}

TEST_F(TrainLoopTest, ASlowLinkIsPushOnTheWayOut) {
  delays_.push = milliseconds(7);
  run(5);
  expect_only("push", 0.035);
}

TEST_F(TrainLoopTest, ASlowRuleIsApply) {
  delays_.rule = milliseconds(7);
  run(5);
  expect_only("apply", 0.035);
}

TEST_F(TrainLoopTest, WaitingForTheGlobalStepIsPull) {
  delays_.global_step = milliseconds(7);
  run(5);
  expect_only("pull", 0.035);
}

TEST_F(TrainLoopTest, AllAtOnceAddUp) {
  delays_ = {.input = milliseconds(1),
             .kernel = milliseconds(2),
             .pull = milliseconds(3),
             .push = milliseconds(4),
             .rule = milliseconds(5),
             .global_step = milliseconds(0),
             .transfer = milliseconds(10)};
  run(4);
  const auto found = seconds();
  EXPECT_DOUBLE_EQ(found.at("input"), 0.004);
  EXPECT_DOUBLE_EQ(found.at("compute"), 0.008);
  EXPECT_DOUBLE_EQ(found.at("pull"), 0.012);
  EXPECT_DOUBLE_EQ(found.at("push"), 0.016);
  EXPECT_DOUBLE_EQ(found.at("apply"), 0.020);
  // The transfers of a step took 10 ms, and 7 of them were waited for.
  EXPECT_DOUBLE_EQ(*meter_.report("worker:0").hidden_ms, 3);
}

TEST_F(TrainLoopTest, TheScheduleFollowsTheGlobalStepAndTheFactor) {
  run(1);
  EXPECT_FLOAT_EQ(store_->learning_rate, 0.5f);
  run(2);  // the global step is 2 when the last step begins
  EXPECT_FLOAT_EQ(store_->learning_rate, 0.05f);
  rates_->set_factor(0.5);
  run(1);
  EXPECT_FLOAT_EQ(store_->learning_rate, 0.025f);
}

TEST_F(TrainLoopTest, AFeedThatStopsMakesNoStep) {
  EXPECT_FALSE(loop_->step([](Feed& feed) { feed.stop(); }));
  EXPECT_EQ(loop_->last().step, 0);
  EXPECT_EQ(store_->global_step(), 0);
}

TEST_F(TrainLoopTest, FeedsDependOnTheStep) {
  std::vector<float> first, second;
  const auto feed_into = [&](std::vector<float>& values) {
    loop_->step([&](Feed& feed) {
      const auto data = feed.normal(x_).data<float>(x_);
      values.assign(data.begin(), data.end());
    });
  };
  feed_into(first);
  feed_into(second);
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace paceline
