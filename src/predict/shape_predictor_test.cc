// Predictions of a step whose time beside others was measured.
#include "predict/shape_predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/temporary_folder.h"
#include "kernels/device.h"
#include "paceline/minimize.h"
#include "paceline/ops.h"
#include "predict/machine_facts.h"

namespace paceline {
namespace {

using ::testing::DoubleNear;

constexpr double kStep = 0.1;  // seconds, of a step alone

/// A model of one number, whose step is known to take kStep and to keep one core busy.
class ShapePredictorTest : public ::testing::Test {
 protected:
  ShapePredictorTest() {
    ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1);
    const std::vector<VariableSpec> specs = variable_specs({&step_.request.graph, 1}, &training_);
    RealClock clock;
    const auto device = make_device({.kind = "naive"}, clock);
    step_.plan = make_plan(step_.request, specs, *device);
    for (const int threads : {1, 2}) {
      this_pace_cache().keep(pace_key(*step_.plan, DType::kFloat32),
                             {.threads = threads, .seconds = kStep, .busy_cores = 1});
    }
  }
  ~ShapePredictorTest() override { ::unsetenv("XDG_CACHE_HOME"); }

  ShapePredictor predictor(int threads = 0, int workers = 2) const {
    Cluster cluster;
    cluster.process = Cluster::Process::kLauncher;
    cluster.launch.ps = 1;
    cluster.launch.workers = workers;
    cluster.threads = threads;
    return {step_, cluster, {}, host_};
  }
  // The steps of a worker in a second.
  static double pace_of(const ShapePredictor& predictor, int workers) {
    return predict(predictor.job(), {.strategy = {"async"}, .ps = 1, .workers = workers})
               .steps_per_s /
           workers;
  }
  static StepsBeside beside(double seconds, double busy_cores) {
    StepsBeside made(kStep);
    made.add(std::vector<StepPace>(2, StepPace{seconds, busy_cores}));
    return made;
  }

  const TemporaryFolder folder_;
  Graph graph_;
  const Value w_ = graph_.variable("w", {1}, Initializer::zeros());
  const Training training_ = minimize(reduce_mean(square(w_)), Sgd{});
  PredictedStep step_{
      .model = "one",
      .request = {.graph = &graph_, .fetches = {}, .training = &training_, .rewrite = {}}};
  const PredictedHost host_{
      .name = "this machine", .cores = 2, .flops_per_s = 1e9, .bytes_per_s = 1e9};
};

TEST_F(ShapePredictorTest, TwoWorkersAreAsSlowAsTwoCopiesWere) {
  ShapePredictor predictor = this->predictor();
  const double before = pace_of(predictor, 2), alone = pace_of(predictor, 1);
  EXPECT_THAT(before, DoubleNear(10, 0.3)) << "each has a core";
  predictor.learn_beside(beside(1.5 * kStep, 1));
  EXPECT_THAT(pace_of(predictor, 2), DoubleNear(10 / 1.5, 0.2));
  EXPECT_EQ(pace_of(predictor, 1), alone) << "a worker that has the machine for itself";
}

// Copies of two threads each on two cores have shared the cores, too, and their time has that.
TEST_F(ShapePredictorTest, CopiesThatSharedCoresAreNotSlowedTwice) {
  ShapePredictor predictor = this->predictor(2);
  predictor.learn_beside(beside(2 * kStep, 1));
  EXPECT_THAT(pace_of(predictor, 2), DoubleNear(5, 0.2));
  predictor.learn_beside(beside(2 * kStep, 0));  // nobody knows how busy they were
  EXPECT_THAT(pace_of(predictor, 2), DoubleNear(5, 0.2));
}

// No more than two copies ran at once, so four workers wait for the two cores besides.
TEST_F(ShapePredictorTest, MoreWorkersThanCoresShareTheCores) {
  ShapePredictor predictor = this->predictor(0, 4);
  predictor.learn_beside(beside(1.5 * kStep, 1));
  EXPECT_THAT(pace_of(predictor, 4), DoubleNear(5 / 1.5, 0.2));
}

TEST_F(ShapePredictorTest, OnlyStepsOfOtherCodeAreCopied) {
  const ShapePredictor predictor = this->predictor();
  EXPECT_EQ(predictor.seconds_alone(), 0);
  const std::vector<JobShape> shapes = {{.strategy = {"async"}, .ps = 1, .workers = 2}};
  EXPECT_TRUE(predictor.copies_to_run(shapes).empty());
}

}  // namespace
}  // namespace paceline
