// Variables of a session that the program reads, sets, saves and loads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/ops.h"
#include "paceline/predictor.h"
#include "paceline/session.h"
#include "train/planned_only.h"
#include "train/testing/served.h"

namespace paceline {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// loss = mean (x·w + b − 1)².
class SharedVariablesTest : public ::testing::Test {
 protected:
  SharedVariablesTest() {
    x_ = graph_.input("x", {4, 2});
    y_ = dense(x_, 3, "layer");
    Tensor ones(DType::kFloat32, {4, 3});
    std::ranges::fill(ones.data<float>(), 1.0f);
    loss_ = mean_squared_error(y_, graph_.constant(ones));
    run_.quiet = true;
    cluster_.threads = 1;
  }

  std::unique_ptr<Session> make() {
    return std::make_unique<Session>(minimize(loss_, Momentum{0.1f, 0.9f}), cluster_, run_);
  }
  static Tensor weights(float value) {
    Tensor made(DType::kFloat32, {2, 3});
    std::ranges::fill(made.data<float>(), value);
    return made;
  }
  void step(Session& session) {
    session.step([&](Feed& feed) { std::ranges::fill(feed.data<float>(x_), 0.5f); });
  }
  float loss_of(Session& session) {
    return session
        .evaluate(loss_, [&](Feed& feed) { std::ranges::fill(feed.data<float>(x_), 0.5f); })
        .item<float>();
  }
  // Checks what a session on this cluster computes before and after a set, and in the next step.
  void check_set() {
    const auto session = make();
    step(*session);
    EXPECT_GT(loss_of(*session), 0);
    session->variables().set("layer/w", weights(1));  // x·w = 1
    session->variables().set("layer/b", Tensor(DType::kFloat32, {3}));
    EXPECT_THAT(session->variables().get("layer/w").data<float>(), Each(1.0f));
    EXPECT_EQ(loss_of(*session), 0);
    step(*session);
    EXPECT_EQ(session->last_step().loss, 0) << "of the values that were set";
    EXPECT_EQ(session->last_step().global_step, 2);
    EXPECT_GT(loss_of(*session), 0) << "the momentum stayed";
  }

  Graph graph_;
  Value x_, y_, loss_;
  Cluster cluster_;
  RunOptions run_;
  TemporaryFolder folder_;
};

TEST_F(SharedVariablesTest, AreReadByName) {
  const auto session = make();
  EXPECT_THAT(session->variables().names(), ElementsAre("layer/w", "layer/b"));
  EXPECT_EQ(session->variables().get("layer/w").shape(), (Shape{2, 3}));
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { session->variables().get("layer/v"); }),
              HasSubstr("no variable 'layer/v'; did you mean"));
}

TEST_F(SharedVariablesTest, AreSetBetweenTwoSteps) { check_set(); }

TEST_F(SharedVariablesTest, AreSetOnADeviceWithMemoryOfItsOwn) {
  cluster_.device.kind = "sim";
  cluster_.device.sim_step_ms = 1;
  cluster_.device.sim_copy_gbps = 1;
  cluster_.device.sim_compute = true;
  check_set();
}

TEST_F(SharedVariablesTest, AreSetForAllTowers) {
  cluster_.towers = cluster_.threads = 2;
  check_set();
}

TEST_F(SharedVariablesTest, KeepTheirTypesAndShapes) {
  const auto session = make();
  const auto refused = [&](const char* name, const Tensor& value) {
    return error_of(
        name == std::string("layer/v") ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
        [&] { session->variables().set(name, value); });
  };
  EXPECT_THAT(refused("layer/w", Tensor(DType::kFloat32, {3, 2})),
              HasSubstr("variable 'layer/w' is float32 (2,3), the tensor is float32 (3,2)"));
  EXPECT_THAT(refused("layer/w", Tensor(DType::kFloat64, {2, 3})), HasSubstr("float64 (2,3)"));
  EXPECT_THAT(refused("layer/w", Tensor()), HasSubstr("the tensor is empty"));
  EXPECT_THAT(refused("layer/v", Tensor()), HasSubstr("no variable 'layer/v'"));
}

TEST_F(SharedVariablesTest, AreSavedToAFileAndLoaded) {
  const std::string path = folder_.path("model.safetensors");
  {
    const auto session = make();
    session->variables().set("layer/w", weights(2));
    session->variables().save(path);
    session->variables().set("layer/w", weights(3));
    session->variables().load(path);
    EXPECT_THAT(session->variables().get("layer/w").data<float>(), Each(2.0f));
  }
  const Tensor x = Tensor::of<float>({1, 2}, {1, 1});
  const Predictor predictor(graph_, {y_}, path);
  EXPECT_THAT(predictor.predict({{x_, x}})[0].data<float>(), Each(4.0f));
  run_.init_from = path;
  EXPECT_THAT(make()->variables().get("layer/w").data<float>(), Each(2.0f));
}

TEST_F(SharedVariablesTest, OfADryRunAreNeitherSavedNorLoaded) {
  run_.observers.push_back(planned_only([](const PlannedSession&) { return false; }));
  const auto session = make();
  ASSERT_FALSE(session->started());
  const std::string path = folder_.path("model.safetensors");
  session->variables().save(path);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_NO_THROW(session->variables().load(path));
  EXPECT_THROW(session->variables().set("layer/w", Tensor(DType::kFloat32, {1})), Error);
}

TEST_F(SharedVariablesTest, OfAnotherModelAreNotLoaded) {
  const std::string path = folder_.path("model.safetensors");
  make()->variables().save(path);
  Graph other;
  const Value x = other.input("x", {4, 2});
  const Value y = add(dense(x, 3, "layer"), dense(x, 3, "more"));
  Session session(minimize(reduce_mean(square(y)), Sgd{}), cluster_, run_);
  const Tensor before = session.variables().get("layer/w");
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { session.variables().load(path); }),
              testing::AllOf(HasSubstr("model.safetensors"), HasSubstr("more/w")));
  EXPECT_TRUE(
      std::ranges::equal(session.variables().get("layer/w").data<float>(), before.data<float>()));
  EXPECT_EQ(error_of(ErrorCode::kNotFound, [&] { session.variables().load(folder_.path("none")); })
                .empty(),
            false);
}

TEST_F(SharedVariablesTest, OfSeveralTasksAreSavedAndNotSet) {
  const Served ps;
  cluster_ = ps.cluster();
  const auto session = make();
  session->variables().save(folder_.path("model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("model.safetensors")));
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition,
                       [&] { session->variables().set("layer/w", weights(1)); }),
              HasSubstr("of a job of several tasks cannot be set"));
}

}  // namespace
}  // namespace paceline
