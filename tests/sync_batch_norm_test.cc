// Tests batch norm of the whole batch (--sync-batch-norm), and of each part, in ResNet-8: with
// workers of an all-reduce, and with towers.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "models/resnet_graph.h"
#include "net/held_ports.h"
#include "paceline/session.h"
#include "train/session_inside.h"

namespace paceline::testing {
namespace {

using models::ResnetGraph;

constexpr std::int64_t kBatch = 8;
constexpr int kSteps = 5;

/// The images [first, first + count) of each batch.
struct Part {
  std::int64_t first = 0, count = kBatch;
};

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> variables;
};

void fill(Feed& feed, const ResnetGraph& resnet, std::int64_t first, std::int64_t count) {
  const auto images = feed.data<float>(resnet.images);
  const auto labels = feed.data<std::int32_t>(resnet.labels);
  const std::size_t pixels = images.size() / std::size_t(count);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const double image = double(first) + double(i / pixels);
    const double pixel = double(i % pixels);
    images[i] = float(std::sin(image * 1.7 + pixel * (0.37 + 0.11 * image)) + 0.2 * image);
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = std::int32_t((std::size_t(first) + i) * 3 % std::size_t(models::kResnetClasses));
  }
}

/// Trains on `part`, the images of this process, which its towers divide among themselves.
Outcome train_in_parts(const Cluster& cluster, Part part, double rate, int steps = kSteps) {
  Graph graph;
  const std::int64_t count = part.count / cluster.towers;
  const ResnetGraph resnet = models::build_resnet(graph, 1, count, true);
  RunOptions run;
  run.quiet = true;
  SessionOptions options;
  options.examples_per_step = count;
  Session session(minimize(resnet.loss, Sgd{float(rate)}), cluster, run, options);
  Outcome outcome;
  for (int step = 0; step < steps; ++step) {
    const auto made = session.step([&](Feed& feed) {
      const std::int64_t tower = feed.step() % cluster.towers;
      const std::int64_t batch = feed.step() / cluster.towers;
      fill(feed, resnet, batch * kBatch + part.first + tower * count, count);
    });
    outcome.losses.push_back(made->loss);
  }
  SessionInside(session).see_variables([&](const std::string& name, const Tensor& value) {
    const auto values = value.data<float>();
    outcome.variables[name].assign(values.begin(), values.end());
  });
  session.finish_training();
  return outcome;
}

Cluster alone(int towers = 1) {
  Cluster cluster;
  cluster.threads = towers;
  cluster.towers = towers;
  return cluster;
}

/// Trains with a worker of one all-reduce for each part.
std::vector<Outcome> train_together(const std::vector<Part>& parts, bool sync_batch_norm,
                                    double rate, int steps = kSteps) {
  const HeldPorts ports(int(parts.size()));
  std::vector<std::future<Outcome>> running;
  for (std::size_t w = 0; w < parts.size(); ++w) {
    Cluster cluster = alone();
    cluster.process = Cluster::Process::kTask;
    cluster.spec.workers = ports.addresses();
    cluster.task = {TaskId::Role::kWorker, int(w)};
    cluster.cluster_id = "test";
    cluster.strategy.name = "allreduce";
    cluster.train.sync_batch_norm = sync_batch_norm;
    running.push_back(std::async(std::launch::async, [cluster, part = parts[w], rate, steps] {
      return train_in_parts(cluster, part, rate, steps);
    }));
  }
  std::vector<Outcome> outcomes;
  for (auto& one : running) outcomes.push_back(one.get());
  return outcomes;
}

double mean_loss(const std::vector<Outcome>& outcomes, const std::vector<Part>& parts, int step) {
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum += outcomes[i].losses.at(std::size_t(step)) * double(parts[i].count);
  }
  return sum / double(kBatch);
}

/// ‖a − b‖ ÷ ‖b‖.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    norm += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

TEST(SyncBatchNorm, WorkersTrainAsOneProcessWithTheWholeBatch) {
  const Outcome whole = train_in_parts(alone(), {}, 0.01);
  for (const std::vector<Part>& parts :
       {std::vector<Part>{{0, 4}, {4, 4}}, {{0, 5}, {5, 3}}, {{0, 3}, {3, 3}, {6, 2}}}) {
    const std::vector<Outcome> outcomes = train_together(parts, true, 0.01);
    for (int step = 0; step < kSteps; ++step) {
      const double loss = whole.losses.at(std::size_t(step));
      EXPECT_NEAR(mean_loss(outcomes, parts, step), loss, 1e-5 * loss) << step;
    }
    for (const char* const moving : {"moving_mean", "moving_variance"}) {
      for (const auto& [name, values] : whole.variables) {
        if (!name.ends_with(moving)) continue;
        EXPECT_LT(distance(outcomes[0].variables.at(name), values), 1e-4) << name;
        EXPECT_EQ(outcomes[0].variables.at(name), outcomes[1].variables.at(name)) << name;
      }
    }
  }
}

TEST(SyncBatchNorm, TowersTrainAsOneDeviceWithTheWholeBatch) {
  const Outcome whole = train_in_parts(alone(), {}, 0.01);
  Cluster cluster = alone(2);
  const Outcome apart = train_in_parts(cluster, {}, 0.01);
  cluster.train.sync_batch_norm = true;
  const Outcome together = train_in_parts(cluster, {}, 0.01);
  for (int step = 0; step < kSteps; ++step) {
    const double loss = whole.losses.at(std::size_t(step));
    EXPECT_NEAR(together.losses.at(std::size_t(step)), loss, 1e-5 * loss) << step;
  }
  EXPECT_GT(std::abs(apart.losses.back() - whole.losses.back()), 1e-3 * whole.losses.back());
}

TEST(SyncBatchNorm, WithoutItTheGradientIsTheMeanOfThoseOfTheParts) {
  constexpr double kRate = 1000;  // beside updates at this rate, the initial values hardly count
  const std::vector<Part> parts{{0, 4}, {4, 4}};
  const std::vector<Outcome> together = train_together(parts, false, kRate, 1);
  const Outcome first = train_in_parts(alone(), parts[0], kRate, 1);
  const Outcome second = train_in_parts(alone(), parts[1], kRate, 1);
  for (const auto& [name, values] : together[0].variables) {
    std::vector<float> mean = first.variables.at(name);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] = float((double(mean[i]) + double(second.variables.at(name)[i])) / 2);
    }
    EXPECT_LT(distance(values, mean), 1e-6) << name;
  }
}

}  // namespace
}  // namespace paceline::testing
