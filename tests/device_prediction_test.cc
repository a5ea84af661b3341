// Tests that the time of a step on a device with a roof of its own is what its roof says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/cifar10_graph.h"
#include "models/mlp.h"
#include "paceline/minimize.h"
#include "predict/shape_predictor.h"
#include "predict/step_cost.h"
#include "train/precision.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

constexpr double kNoLimit = 1e300;
// The bytes of a batch lie in blocks of 64 bytes.
constexpr double kMlpBatch = 2 * 8 * 4 * 4,
                 kMlpValues = 4 * (4 * 16 + 16 + 16 * 16 + 16 + 16 * 4 + 4);
constexpr double kCifarBatch = 2 * 3 * 24 * 24 * 4 + 64, kCifarValues = 4 * 1'068'298.0;

/// The step of a model, and its prediction on a GPU with this roof.
class PredictedOnDevice {
 public:
  explicit PredictedOnDevice(const Training& training) : training_(training) {
    step_.model = "a model";
    step_.request.graph = &training_.graph();
    step_.request.training = &training_;
    cluster_.device.kind = "cuda";
  }
  /// Returns the work of the graph that a run on the GPU computes.
  StepCost work() const {
    PlanRequest request = step_.request;
    request.rewrite = rewrite_of(cluster_);
    return step_work(request);
  }
  ShapePredictor predictor(const DeviceRoof& device) const {
    const PredictedHost here{.name = "this machine",
                             .cores = 4,
                             .flops_per_s = 200e9,
                             .bytes_per_s = 50e9,
                             .device = device};
    return {step_, cluster_, {}, here};
  }
  SimulatedStep step(const DeviceRoof& device) const {
    return predictor(device).job().step({.own_rules = true});
  }

 private:
  const Training& training_;
  PredictedStep step_;
  Cluster cluster_;
};

DeviceRoof without_limits() {
  return {.name = "Some GPU",
          .flops_per_s = kNoLimit,
          .bytes_per_s = kNoLimit,
          .upload_bytes_per_s = kNoLimit,
          .download_bytes_per_s = kNoLimit};
}

void expect_by_hand(const PredictedOnDevice& on_device, double batch, double values) {
  const StepCost work = on_device.work();
  DeviceRoof launches = without_limits(), copies = without_limits();
  launches.launch_s = 1;
  EXPECT_DOUBLE_EQ(on_device.step(launches).seconds(), double(work.ops.size()));
  copies.upload_bytes_per_s = 1000;
  const double up = (batch + values) / 1000, down = values / 500;
  EXPECT_NEAR(on_device.step(copies).seconds(), up, 1e-9 * up);
  copies.download_bytes_per_s = 500;
  EXPECT_NEAR(on_device.step(copies).seconds(), up + down, 1e-9 * (up + down));

  const DeviceRoof roof{.name = "Some GPU",
                        .flops_per_s = 50e12,
                        .bytes_per_s = 4e12,
                        .launch_s = 5e-6,
                        .upload_bytes_per_s = 50e9,
                        .download_bytes_per_s = 40e9};
  double seconds = (batch + values) / 50e9 + values / 40e9;
  for (const Cost& op : work.ops) seconds += 5e-6 + std::max(op.flops / 50e12, op.bytes / 4e12);
  const SimulatedStep step = on_device.step(roof);
  EXPECT_NEAR(step.seconds(), seconds, 1e-9 * seconds);
  EXPECT_DOUBLE_EQ(step.rule_bytes(), work.rule_bytes) << "the host applies the rules, as always";
  EXPECT_EQ(step.threads, 0) << "its kernels keep no core of the host busy";
}

TEST(DevicePrediction, AStepOfMlpTakesWhatItsRoofSays) {
  Graph graph;
  const models::MlpConfig config{.batch = 8, .features = 4, .hidden = 16};
  const Training training = minimize(models::build_mlp(graph, config).loss, config.rule);
  const PredictedOnDevice mlp(training);
  expect_by_hand(mlp, kMlpBatch, kMlpValues);
  PlanRequest plain;
  plain.graph = &graph;
  plain.training = &training;
  EXPECT_LT(mlp.work().ops.size(), step_work(plain).ops.size())
      << "products add their biases themselves";
  // Products of three layers forward and for the weights, and of two for their inputs.
  const double products = 2 * 8 * (2 * (4 * 16 + 16 * 16 + 16 * 4) + 16 * 16 + 16 * 4);
  DeviceRoof products_alone = without_limits();
  products_alone.flops_per_s = 1000;
  EXPECT_GE(mlp.step(products_alone).seconds(), products / 1000);
  EXPECT_LE(mlp.step(products_alone).seconds(), 1.2 * products / 1000);
}

TEST(DevicePrediction, AStepOfCifar10TakesWhatItsRoofSays) {
  Graph graph;
  const Value loss = models::build_cifar10(graph, 2).loss;
  const Training training = minimize(loss, Sgd{});
  expect_by_hand(PredictedOnDevice(training), kCifarBatch, kCifarValues);
}

TEST(DevicePrediction, SaysThatNoRunHasVerifiedItWithinAWideInterval) {
  Graph graph;
  const models::MlpConfig config{.batch = 8, .features = 4, .hidden = 16};
  const Training training = minimize(models::build_mlp(graph, config).loss, config.rule);
  DeviceRoof roof = without_limits();
  roof.launch_s = 1e-3;
  const ShapePredictor predictor = PredictedOnDevice(training).predictor(roof);
  EXPECT_THAT(predictor.facts(), HasSubstr("the times of Some GPU are predicted from its roof "
                                           "file and were not verified by a run"));
  const Prediction alone = predict_alone(predictor.job());
  EXPECT_FALSE(alone.measured);
  EXPECT_DOUBLE_EQ(alone.low, alone.steps_per_s / 16);
  EXPECT_GT(alone.high, 1.5 * alone.steps_per_s);
}

TEST(DevicePrediction, ADeviceWithoutARoofIsNotPredicted) {
  Cluster cluster;
  cluster.device.kind = "cuda";
  EXPECT_THAT(why_not_predicted(cluster, {}), HasSubstr("--device cuda is not predicted"));
  cluster.device.kind = "sim";
  EXPECT_EQ(why_not_predicted(cluster, {}), "");
}

}  // namespace
}  // namespace paceline
