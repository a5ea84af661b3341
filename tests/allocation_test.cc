// Tests that after the first steps our code allocates nothing in a step: in mlp and ptb, in one
// process and as a worker, and in cifar10 and resnet.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <vector>

#include "base/allocation_hook.h"
#include "models/cifar10_graph.h"
#include "models/mlp.h"
#include "models/ptb_graph.h"
#include "models/resnet_graph.h"
#include "paceline/hooks.h"
#include "paceline/minimize.h"
#include "paceline/session.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

constexpr std::int64_t kCountedSteps = 30, kMostCounts = 20;

/// Reads the counts every few steps until they no longer grow. A thread allocates once when it gets
/// its first tile, which may happen late on a busy machine.
class CountAllocations : public Hook {
 public:
  explicit CountAllocations(std::vector<AllocationCounts>& counts) : counts_(counts) {
    counts_.reserve(kMostCounts);
  }
  bool after_step(Session&, const StepResult& result) override {
    if (result.step % kCountedSteps == 0) counts_.push_back(allocation_counts());
    return !nothing_is_new(counts_) && std::int64_t(counts_.size()) < kMostCounts;
  }
  /// True if, in the last two intervals of counted steps, our code has allocated nothing, and
  /// oneDNN has allocated equally often in both.
  static bool nothing_is_new(const std::vector<AllocationCounts>& counts) {
    if (counts.size() < 3) return false;
    const auto* const last = counts.data() + counts.size() - 3;
    return last[0].ours == last[2].ours &&
           last[1].foreign - last[0].foreign == last[2].foreign - last[1].foreign;
  }

 private:
  std::vector<AllocationCounts>& counts_;
};

void expect_none(Training training, const Cluster& cluster, const std::function<void(Feed&)>& feed,
                 RunOptions run = {}) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  run.quiet = true;
  std::vector<AllocationCounts> counts;
  {
    Session session(std::move(training), cluster, run);
    session.add(CountAllocations(counts));
    session.run(feed);
  }
  ASSERT_GE(counts.size(), 3u);
  const AllocationCounts last = counts.back(), before = counts[counts.size() - 2];
  EXPECT_TRUE(CountAllocations::nothing_is_new(counts))
      << last.ours - before.ours << " of ours and " << last.foreign - before.foreign
      << " of oneDNN in the last " << kCountedSteps << " steps";
  const std::int64_t foreign = last.foreign - before.foreign;
  ::testing::Test::RecordProperty("onednn_allocations_per_step", int(foreign / kCountedSteps));
  std::printf("oneDNN's own allocations: %.1f a step\n", double(foreign) / kCountedSteps);
}

void expect_none_in_mlp(const Cluster& cluster, const RunOptions& run = {}) {
  Graph graph;
  models::MlpConfig config;
  config.hidden = 128;
  const models::MlpGraph mlp = models::build_mlp(graph, config);
  expect_none(
      minimize(mlp.loss, config.rule), cluster,
      [&](Feed& feed) { feed.normal(mlp.x).normal(mlp.y); }, run);
}

void expect_none_in_ptb(const Cluster& cluster) {
  Graph graph;
  models::PtbConfig config;
  config.hidden = 32;
  config.vocabulary = 500;
  const models::PtbGraph ptb = models::build_ptb(graph, config, config.batch, config.unroll, true);
  MinimizeOptions options;
  options.clip_norm = 5;
  expect_none(minimize(ptb.cost, Sgd{}, options), cluster, [&](Feed& feed) {
    const auto inputs = feed.data<std::int32_t>(ptb.inputs);
    const auto targets = feed.data<std::int32_t>(ptb.targets);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = std::int32_t((std::size_t(feed.step()) * 31 + i * i) % 500);
      targets[i] = std::int32_t((std::size_t(inputs[i]) * 7 + 3) % 500);
    }
  });
}

template <typename ImageGraph>
void expect_none_in_images(const Training& training, const ImageGraph& graph) {
  expect_none(training, {}, [&](Feed& feed) {
    feed.normal(graph.images);
    std::int32_t next = 0;
    for (std::int32_t& label : feed.data<std::int32_t>(graph.labels)) label = next++ % 10;
  });
}

/// A ps in its own process, and this process as its only worker.
class ServedWorker {
 public:
  ServedWorker()
      : spec_{.ps = {free_address()}, .workers = {free_address()}},
        server_(paceline_words({"train", "mlp", "--cluster", spec_.str(), "--task", "ps:0",
                                "--cluster-id", "allocation"})) {}

  Cluster cluster() const {
    Cluster cluster;
    cluster.process = Cluster::Process::kTask;
    cluster.spec = spec_;
    cluster.cluster_id = "allocation";
    return cluster;
  }

 private:
  ClusterSpec spec_;
  Process server_;
};

TEST(Allocation, NoneInAStepOfMlpAlone) { expect_none_in_mlp({}); }
TEST(Allocation, NoneInAStepOfPtbAlone) { expect_none_in_ptb({}); }
TEST(Allocation, NoneInAStepOfCifar10Alone) {
  Graph graph;
  const models::Cifar10Graph cifar10 = models::build_cifar10(graph, 4);
  expect_none_in_images(models::cifar10_minimize(cifar10, {.batch = 4}), cifar10);
}
TEST(Allocation, NoneInAStepOfResnetAlone) {
  Graph graph;
  const models::ResnetGraph resnet = models::build_resnet(graph, 1, 4, true);
  expect_none_in_images(models::resnet_minimize(resnet, {.batch = 4, .units = 1}), resnet);
}
TEST(Allocation, NoneInAStepOfMlpAsAWorker) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  expect_none_in_mlp(ServedWorker().cluster());
}
TEST(Allocation, NoneInAStepOfMlpThatATimelineShows) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  const TemporaryFolder folder;
  RunOptions run;
  run.timeline = folder.path("timeline.json");
  run.timeline_first = 0;
  run.timeline_end = kMostCounts * kCountedSteps;
  expect_none_in_mlp({}, run);
  expect_none_in_mlp(ServedWorker().cluster(), run);
}
TEST(Allocation, NoneInAStepOfPtbAsAWorker) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  expect_none_in_ptb(ServedWorker().cluster());
}

}  // namespace
}  // namespace paceline::testing
