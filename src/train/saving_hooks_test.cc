// Hooks that save, count, guard and evaluate; sessions that save on parameter servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/safetensors_writer.h"
#include "paceline/error.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "train/initial_values.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

/// loss = mean (x·w − y)², w begins at 0.
class SavingHooks : public ::testing::Test {
 protected:
  SavingHooks() {
    x_ = graph_.input("x", {4, 2});
    const Value y = graph_.constant(Tensor(DType::kFloat32, {4, 3}));
    loss_ = mean_squared_error(matmul(x_, graph_.variable("w", {2, 3})), y);
    run_.quiet = true;
    run_.out = folder_.path();
    run_.save_every = Interval();
    run_.steps = 20;
    cluster_.threads = 1;
  }

  std::unique_ptr<Session> make() {
    return std::make_unique<Session>(minimize(loss_, Sgd{0.1f}), cluster_, run_);
  }
  std::function<void(Feed&)> feed(std::int64_t bad_step = -1) {
    return [this, bad_step](Feed& f) {
      f.normal(x_);
      if (f.step() == bad_step) f.data<float>(x_)[0] = std::numeric_limits<float>::infinity();
    };
  }
  std::vector<std::int64_t> saved_steps() const {
    std::vector<std::int64_t> steps;
    const Checkpoints checkpoints(folder_.path("checkpoints"));
    for (const auto& found : checkpoints.list(WholeCheck::kChecksums)) {
      EXPECT_EQ(found.torn, "");
      steps.push_back(found.step);
    }
    return steps;
  }

  TemporaryFolder folder_;
  Graph graph_;
  Value x_, loss_;
  Cluster cluster_;
  RunOptions run_;
};

/// Every five steps, waits for the save that was begun, so that the next one can begin.
class WaitForSave : public Hook {
 public:
  bool after_step(Session& session, const StepResult& result) override {
    if (result.step % 5 == 0) session.save();
    return true;
  }
};

TEST_F(SavingHooks, SaveEveryBeginsACheckpointAtItsSteps) {
  const auto session = make();
  session->add(SaveEvery{5}).add(WaitForSave());
  session->run(feed());
  EXPECT_EQ(saved_steps(), (std::vector<std::int64_t>{20, 15, 10, 5}));
}

TEST_F(SavingHooks, ARunSavesAtItsEndAndTwiceTheSameStepOnce) {
  const auto session = make();
  session->run(feed());
  session->save();
  EXPECT_FALSE(std::filesystem::exists(folder_.path("checkpoints/step-20.part")));
  EXPECT_EQ(saved_steps(), std::vector<std::int64_t>{20});
}

TEST_F(SavingHooks, ThePositionComesBack) {
  {
    const auto session = make();
    EXPECT_TRUE(session->position().empty());
    session->on_save([&](TaskPosition& position) {
      position.numbers["batch"] = session->last_step().step;
      position.sums["cost"] = 0.1;
    });
    session->run(feed());
  }
  run_.resume = true;
  run_.steps = 25;
  const auto session = make();
  EXPECT_EQ(session->position(), (TaskPosition{{{"batch", 20}}, {{"cost", 0.1}}}));
  EXPECT_EQ(session->last_step().step, 20);
  session->run(feed());
  EXPECT_EQ(session->last_step().global_step, 25);
}

TEST_F(SavingHooks, LocalVariablesOfSharedGraphsComeBack) {
  Graph counting;
  const Value count = counting.local("count", {1});
  Tensor one(DType::kFloat32, {1});
  one.data<float>()[0] = 1;
  const Value next = add(count, counting.constant(one));
  counting.assign(count, next);
  const auto counted = [&](Session& session) {
    return session.evaluate(counting, {&next, 1}, nullptr)[0].item<float>();
  };
  {
    const auto session = make();
    session->share(counting);
    EXPECT_EQ(counted(*session), 1);
    EXPECT_EQ(counted(*session), 2);
    session->run(feed());
  }
  run_.resume = true;
  run_.steps = 25;
  const auto session = make();
  session->share(counting);
  EXPECT_EQ(counted(*session), 3);
  Graph other;
  other.local("count", {7});
  EXPECT_NO_THROW(make()->share(other)) << "of another shape: it begins anew";
}

// The checkpoint has slots of a rule that the session does not have.
TEST_F(SavingHooks, ASessionWithoutATrainingReadsTheValuesOfAnyCheckpointOfItsModel) {
  run_.steps = 5;
  Tensor value;
  {
    Session trained(minimize(loss_, Momentum{.learning_rate = 0.1f}), cluster_, run_);
    while (trained.run(feed())) {
    }
    value = trained.variables().get("w");
  }
  run_.resume = true;
  Session evaluates(graph_, cluster_, run_);
  const Tensor read = evaluates.variables().get("w");
  EXPECT_TRUE(std::ranges::equal(read.data<float>(), value.data<float>()));
}

TEST_F(SavingHooks, ClassesAreKeptAndOthersRefused) {
  const auto train = [&](const std::vector<std::string>& classes, std::int64_t steps) {
    run_.steps = steps;
    SessionOptions options;
    if (!classes.empty()) options.data_names["classes"] = classes;
    Session session(minimize(loss_, Sgd{0.1f}), cluster_, run_, options);
    while (session.run(feed())) {
    }
  };
  const auto refusal = [&](const std::vector<std::string>& classes) {
    return error_of(ErrorCode::kFailedPrecondition, [&] { train(classes, 9); });
  };
  train({"cat", "dog", "caf\xE9"}, 3);
  run_.resume = true;
  EXPECT_THAT(
      refusal({"dog", "cat", "caf\xE9"}),
      HasSubstr("step-3 is of other data: number 0 of the classes is 'dog' in the data, and "
                "it was trained with 'cat'"));
  EXPECT_THAT(refusal({"cat", "caf\xE9"}),
              HasSubstr("the classes of the data lack 'dog', which it"));
  EXPECT_THAT(refusal({"cat", "dog", "caf\xE9", "owl"}),
              HasSubstr("the classes of the data have 'owl', which it was trained without"));
  train({"cat", "dog", "caf\xE9"}, 4);
  train({}, 5);  // and this checkpoint does not tell them
  run_.quiet = false;
  ::testing::internal::CaptureStdout();
  train({"cat", "dog"}, 6);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStdout(),
      HasSubstr("step-5 does not tell its classes: they are taken to be those of the data"));
}

TEST_F(SavingHooks, InitialValuesAreConvertedFromOtherPrecisions) {
  const std::string name = "w";
  const std::string file = folder_.path("values.safetensors");
  run_.init_from = file;
  run_.init_only = {name};
  run_.out.clear();
  const std::vector<float> halves = {0, 0.5f, 1, 1.5f, 2, -2.5f};
  for (const DType dtype : {DType::kFloat16, DType::kFloat64, DType::kBFloat16}) {
    const Tensor saved = as_type(Tensor::of<float>({2, 3}, halves), dtype);
    write_safetensors(file, std::vector<NamedTensor>{{name, saved}});
    const Tensor value = make()->variables().get(name);
    EXPECT_TRUE(std::ranges::equal(value.data<float>(), halves)) << name_of(dtype);
  }
}

TEST_F(SavingHooks, StepCounterCounts) {
  const auto session = make();
  auto counter = std::make_unique<StepCounter>(Interval(10));
  const StepCounter& counts = *counter;
  session->add(std::unique_ptr<Hook>(std::move(counter)));
  session->run(feed());
  EXPECT_EQ(counts.steps(), 20);
}

TEST_F(SavingHooks, NanGuardIsThereByDefaultNamesTheVariableAndNothingOfItIsSaved) {
  run_.save_every = Interval(1);
  const auto session = make();
  try {
    session->run(feed(7));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("worker:0 contributed NaN or infinity to w in its step 7"));
  }
  for (const std::int64_t step : saved_steps()) EXPECT_LT(step, 8);
}

TEST_F(SavingHooks, WithoutNanGuardTrainingGoesOn) {
  SessionOptions options;
  options.nan_guard = false;
  Session session(minimize(loss_, Sgd{0.1f}), cluster_, run_, options);
  session.run(feed(7));
  EXPECT_EQ(session.last_step().step, 20);
  EXPECT_FALSE(std::isfinite(session.last_step().loss));
}

TEST_F(SavingHooks, EvaluateEveryCallsAndMayEndTraining) {
  const auto session = make();
  std::vector<std::int64_t> at;
  session->add(EvaluateEvery(Interval(4), [&](Session&, const StepResult& result) {
    at.push_back(result.global_step);
    return at.size() < 3;
  }));
  EXPECT_FALSE(session->run(feed()));
  EXPECT_EQ(at, (std::vector<std::int64_t>{4, 8, 12}));
}

}  // namespace
}  // namespace paceline
