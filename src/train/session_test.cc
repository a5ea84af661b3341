#include "paceline/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/temporary_folder.h"
#include "paceline/error.h"
#include "paceline/hooks.h"
#include "paceline/minimize.h"
#include "paceline/ops.h"
#include "run/report/report.h"
#include "train/session_inside.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(SessionTest, TrainsToTheStepAskedFor) {
  run_.steps = 200;
  Session session(training(), cluster_, run_);
  EXPECT_FALSE(session.run(feeding()));
  EXPECT_EQ(session.last_step().step, 200);
  EXPECT_EQ(session.last_step().global_step, 200);
  EXPECT_LT(session.last_step().loss, 1e-3);
}

// The session fails before it makes a plan, which would take longer than any test.
TEST_F(SessionTest, InputsThatFitNoMemoryAreRefusedAtOnce) {
  Graph graph;
  const Value x = graph.input("x", {100'000'000'000, 64});
  const Value loss = reduce_mean(square(dense(x, 64, "layer")));
  try {
    const Session session(minimize(loss, Sgd{}), cluster_, run_);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("the inputs of a step of this batch need 25,600,"));
    EXPECT_THAT(error.what(), HasSubstr(" MB, this machine has "));
  }
}

TEST_F(SessionTest, RunsInPartsThatTheFeedEnds) {
  Session session(training(), cluster_, run_);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    int left = 5;
    EXPECT_TRUE(session.run([&](Feed& f) { left-- > 0 ? feed(f) : f.stop(); }));
    EXPECT_EQ(session.last_step().step, 5 * epoch);
  }
}

TEST_F(SessionTest, AHookEndsTraining) {
  Session session(training(), cluster_, run_);
  session.add(StopAtStep(7));
  EXPECT_FALSE(session.run(feeding()));
  EXPECT_EQ(session.last_step().global_step, 7);
}

TEST_F(SessionTest, RepeatsBitForBit) {
  run_.steps = 20;
  const auto last_loss = [&](std::uint64_t seed) {
    run_.seed = seed;
    Session session(training(), cluster_, run_);
    session.run(feeding());
    return session.last_step().loss;
  };
  EXPECT_EQ(last_loss(1), last_loss(1));
  EXPECT_NE(last_loss(1), last_loss(2));
}

TEST_F(SessionTest, AsksForAnyNamedValueWithoutTraining) {
  run_.steps = 5;
  Session session(training(), cluster_, run_);
  session.run(feeding());
  const auto zero = [&](Feed& f) { f.set(x_, Tensor(DType::kFloat32, {16, 1})); };
  const float bias = session.evaluate("layer/b", zero).data<float>()[0];
  EXPECT_EQ(session.evaluate("prediction", zero).data<float>()[3], bias);
  EXPECT_NE(bias, 0);
}

TEST_F(SessionTest, EvaluatesAnyValueWithTheNewestVariables) {
  Graph valid;
  const Value x = valid.input("x", {1, 1}), doubled = scale(dense(x, 1, "layer"), 2);
  const Value w = graph_.find("layer/w");
  const Value slope = gradients(loss_, {w})[0];
  Session session(training(), cluster_, run_);
  const auto at_one = [&](Feed& f) { f.data<float>(x)[0] = 1; };
  EXPECT_THROW(session.evaluate(doubled, at_one), Error) << "not shared yet";
  EXPECT_THROW(session.evaluate(Value(), nullptr), Error);
  session.share(valid);
  const auto value_of = [&](Value value) { return session.evaluate(value, nullptr).item<float>(); };
  for (int step = 0; step < 3; ++step) {
    const float before = value_of(w);
    session.step(feeding());
    const float after = value_of(w), bias = value_of(graph_.find("layer/b"));
    EXPECT_NE(before, after);
    EXPECT_EQ(session.evaluate(doubled, at_one).item<float>(), 2 * (after + bias));
  }
  // The weight moves by the gradient that the session returns.
  const auto same_batch = [&](Feed& f) {
    std::ranges::fill(f.data<float>(x_), 0.5f);
    std::ranges::fill(f.data<float>(y_), -1.0f);
  };
  const float before = value_of(w), gradient = session.evaluate(slope, same_batch).item<float>();
  session.step(same_batch);
  EXPECT_NE(gradient, 0);
  EXPECT_NEAR(value_of(w), before - 0.1f * gradient, 1e-6);
}

TEST_F(SessionTest, ANameOfNoGraphGetsTheNearestOfAll) {
  Graph valid;
  valid.named("accuracy", dense(valid.input("x", {1, 1}), 1, "layer"));
  Session session(training(), cluster_, run_);
  session.share(valid);
  const auto refused = [&](const char* name, const char* nearest) {
    try {
      session.evaluate(name, nullptr);
      ADD_FAILURE() << name << " was found";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(name), HasSubstr(nearest)));
    }
  };
  refused("predicton", "'prediction'");  // of the first graph
  refused("acuracy", "'accuracy'");      // of the second
}

TEST_F(SessionTest, EvaluationsSeeWhatTheLastStepChanged) {
  struct Weights : Hook {
    std::set<float>* seen = nullptr;
    bool after_step(Session& session, const StepResult&) override {
      seen->insert(session.evaluate("layer/w", nullptr).data<float>()[0]);
      return true;
    }
  };
  std::set<float> seen;
  Weights weights;
  weights.seen = &seen;
  run_.steps = 3;
  Session session(training(), cluster_, run_);
  seen.insert(session.evaluate("layer/w", nullptr).data<float>()[0]);
  session.add(weights);
  session.run(feeding());
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(SessionTest, VariablesThatAreNotTrainedMayBeOfAnyType) {
  const Value half =
      graph_.variable("fixed/half", {2}, Initializer::constant(1.5f), DType::kBFloat16);
  const Value count = graph_.variable("fixed/count", {}, Initializer::constant(7), DType::kInt64);
  graph_.named("sum", cast(half, DType::kFloat32) + cast(count, DType::kFloat32));
  run_.steps = 2;
  Session session(training(), cluster_, run_);
  session.run(feeding());
  EXPECT_EQ(session.evaluate("sum", nullptr).data<float>()[1], 8.5f);
  EXPECT_EQ(session.evaluate("fixed/count", nullptr).item<std::int64_t>(), 7);
}

TEST_F(SessionTest, ATrainedVariableOfAnotherTypeIsRefusedByName) {
  const Value w = graph_.variable("w64", {}, Initializer::constant(1), DType::kFloat64);
  const Training both = minimize(square(w), Sgd{});
  try {
    Session session(both, cluster_, run_);
    ADD_FAILURE() << "a rule for float64";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("w64"), HasSubstr("float64")));
  }
}

TEST_F(SessionTest, AGraphThatWasRefusedIsNotAskedForNames) {
  Graph other;
  other.named("stray", dense(other.input("x", {1, 1}), 2, "layer"));
  Session session(training(), cluster_, run_);
  EXPECT_THROW(session.share(other), Error);
  EXPECT_THROW(session.evaluate("stray", nullptr), Error);
  EXPECT_EQ(session.evaluate("layer/b", nullptr).elements(), 1);
}

TEST_F(SessionTest, AccuracyNeedsNoCasts) {
  Graph graph;
  const Value scores = graph.input("scores", {4, 3}),
              kinds = graph.input("kinds", {4}, DType::kInt32);
  const Value right = reduce_mean(equal(arg_max(scores), kinds));
  EXPECT_THROW(equal(scores, kinds), Error);
  Session session(graph, cluster_, run_);
  const Tensor seen = session.evaluate(right, [&](Feed& to) {
    to.set(scores, Tensor::of<float>({4, 3}, {1, 2, 0, 5, 4, 3, 0, 0, 1, 1, 0, 0}));
    to.set(kinds, Tensor::of<std::int32_t>({4}, {1, 0, 2, 2}));
  });
  EXPECT_EQ(seen.item<float>(), 0.75f);
}

TEST_F(SessionTest, FetchSeesTheNewestVariables) {
  Session session(training(), cluster_, run_);
  const Value weight = graph_.find("layer/w");
  const auto fetch = [&] { return *session.fetch(graph_, {&weight, 1}, nullptr)[0].as<float>(); };
  const float before = fetch();
  int left = 3;
  session.run([&](Feed& f) { left-- > 0 ? feed(f) : f.stop(); });
  EXPECT_NE(fetch(), before);
}

TEST_F(SessionTest, SharesVariablesWithAnotherGraph) {
  Graph one;
  const Value x = one.input("x", {1, 1});
  const Value prediction = dense(x, 1, "layer");
  Graph stranger;
  dense(stranger.input("x", {1, 1}), 1, "other");
  run_.steps = 300;
  Session session(training(), cluster_, run_);
  session.share(one);
  EXPECT_THROW(session.share(stranger), Error);
  session.run(feeding());
  const auto three = [&](Feed& f) { f.data<float>(x)[0] = 3; };
  const auto values = session.evaluate(one, {&prediction, 1}, three);
  EXPECT_NEAR(values[0].item<float>(), 5, 0.05);
}

TEST_F(SessionTest, WatchesValues) {
  run_.steps = 3;
  SessionOptions options;
  options.watch = {prediction_};
  Session session(training(), cluster_, run_, options);
  session.run(feeding());
  const auto watched = [&] {
    const std::span<const float> values = session.value(prediction_).data<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> of_last_step = watched();
  // The step has changed the variables, so an evaluation predicts something else.
  const Tensor now = session.evaluate(prediction_, feeding());
  EXPECT_NE(now.data<float>()[0], of_last_step[0]);
  EXPECT_EQ(watched(), of_last_step) << "an evaluation does not replace watched values";
  EXPECT_THROW(session.value(loss_), Error);
}

TEST_F(SessionTest, TheLearningRateFactorCounts) {
  Session session(training(), cluster_, run_);
  session.set_learning_rate_factor(0);
  session.begin_evaluation();
  const float before = session.evaluate("layer/w", feeding()).data<float>()[0];
  int left = 3;
  session.run([&](Feed& f) { left-- > 0 ? feed(f) : f.stop(); });
  session.begin_evaluation();
  EXPECT_EQ(session.evaluate("layer/w", feeding()).data<float>()[0], before);
}

TEST_F(SessionTest, TheRampLetsAveragesForgetTheInitialValues) {
  MinimizeOptions averaging;
  averaging.average_decay = 0.25f;
  averaging.average_ramp = true;
  Session session(minimize(loss_, Sgd{.learning_rate = 0.1f}, averaging), cluster_, run_);
  const auto weight = [&](EvaluateWith with) {
    session.begin_evaluation(with);
    return session.evaluate("layer/w", feeding()).data<float>()[0];
  };
  double average = weight(EvaluateWith::kVariables);
  for (int n = 1; n <= 5; ++n) {
    int left = 1;
    session.run([&](Feed& f) { left-- > 0 ? feed(f) : f.stop(); });
    const double decay = std::min(0.25, (1.0 + n) / (10.0 + n));  // 2/11, 3/12, and then 0.25
    average = decay * average + (1 - decay) * weight(EvaluateWith::kVariables);
    EXPECT_NEAR(weight(EvaluateWith::kAverages), average, 1e-6) << n;
  }
}

TEST_F(SessionTest, EvaluatesWithMovingAverages) {
  constexpr float kDecay = 0.75f;
  MinimizeOptions averaging;
  averaging.average_decay = kDecay;
  Session session(minimize(loss_, Sgd{.learning_rate = 0.1f}, averaging), cluster_, run_);
  const auto weight = [&](EvaluateWith with) {
    session.begin_evaluation(with);
    return session.evaluate("layer/w", feeding()).data<float>()[0];
  };
  float average = weight(EvaluateWith::kVariables);
  EXPECT_EQ(weight(EvaluateWith::kAverages), average) << "it begins as the variable";
  for (int step = 0; step < 5; ++step) {
    int left = 1;
    session.run([&](Feed& f) { left-- > 0 ? feed(f) : f.stop(); });
    average = kDecay * average + (1 - kDecay) * weight(EvaluateWith::kVariables);
    EXPECT_NEAR(weight(EvaluateWith::kAverages), average, 1e-6) << step;
  }
  EXPECT_NE(weight(EvaluateWith::kVariables), average);
  // A program that looks at the variables meanwhile does not change the values of an evaluation.
  session.begin_evaluation(EvaluateWith::kAverages);
  float seen = average;
  SessionInside(session).see_variables([&](const std::string& name, const Tensor& value) {
    if (name == "layer/w") seen = value.data<float>()[0];
  });
  EXPECT_NEAR(session.evaluate("layer/w", feeding()).data<float>()[0], average, 1e-6);
  EXPECT_GT(std::abs(seen - average), 1e-5);
}

TEST_F(SessionTest, LocalsGoOnAndAreReset) {
  const Value count = graph_.local("count", {1});
  graph_.assign(count, add(count, graph_.constant(Tensor::of<float>({1}, {1.0f}))));
  SessionOptions options;
  options.watch = {count};
  Session session(training(), cluster_, run_, options);
  const auto run_steps = [&](int steps) {
    session.run([&](Feed& f) { steps-- > 0 ? feed(f) : f.stop(); });
    return session.value(count).data<float>()[0];
  };
  EXPECT_EQ(run_steps(3), 2);  // read before it changes
  EXPECT_EQ(run_steps(2), 4);
  session.evaluate("loss", feeding());
  EXPECT_EQ(run_steps(1), 5);  // an evaluation of the train graph leaves its locals alone
  session.reset_locals(graph_);
  EXPECT_EQ(run_steps(1), 0);
}

TEST_F(SessionTest, AFeedRefusesWhatDoesNotFit) {
  Session session(training(), cluster_, run_);
  const auto refused = [&](const std::function<void(Feed&)>& feed, const std::string& part) {
    try {
      session.evaluate("loss", feed);
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  };
  refused([&](Feed& f) { f.set(x_, Tensor(DType::kFloat32, {16, 2})); }, "float32 (16,1)");
  refused([&](Feed& f) { f.set(x_, Tensor(DType::kInt32, {16, 1})); }, "int32 (16,1)");
}

TEST_F(SessionTest, ProgressSaysStepLossSpeedAndTimeLeft) {
  run_.quiet = false;
  run_.steps = 3;
  Session session(training(), cluster_, run_);
  session.add(Progress(std::chrono::milliseconds(0)));
  ::testing::internal::CaptureStdout();
  session.run(feeding());
  const std::string output = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(output, HasSubstr("step 2 loss "));
  EXPECT_THAT(output, HasSubstr(" steps/s "));
  EXPECT_THAT(output, HasSubstr(" s left"));
}

TEST_F(SessionTest, QuietPrintsNothing) {
  run_.steps = 3;
  ::testing::internal::CaptureStdout();
  {
    Session session(training(), cluster_, run_);
    session.add(Progress(std::chrono::milliseconds(0)));
    session.run(feeding());
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace paceline
