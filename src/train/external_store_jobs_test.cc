// Stores of several workers whose models other code computes, under each strategy: each worker is a
// thread, as if it were a task of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "net/held_ports.h"
#include "paceline/error.h"
#include "train/testing/external_trainee.h"
#include "train/testing/quiet.h"
#include "train/testing/served.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

const Adam kRule{.learning_rate = 0.01f};

struct JobWay {
  const char* name;
  Strategy strategy;
  bool has_ps = true;
  // True if the losses are those of one process on the whole batch.
  bool as_one = false;
  const char* link = "shm";
  DType wire = DType::kFloat32;
  int accumulate = 1;
};
void PrintTo(const JobWay& way, std::ostream* out) { *out << way.name; }

/// A parameter server, where the strategy has one, and addresses for the workers.
class ExternalJob {
 public:
  ExternalJob(const JobWay& way, int workers) : way_(way), ports_(workers) {
    if (way.has_ps) served_.emplace(ports_.addresses());
  }
  Cluster cluster(int worker) const {
    Cluster cluster;
    if (served_) {
      cluster = served_->cluster(worker);
    } else {
      cluster.process = Cluster::Process::kTask;
      cluster.spec.workers = ports_.addresses();
      cluster.task = {TaskId::Role::kWorker, worker};
      cluster.cluster_id = "test";
      cluster.threads = 1;
    }
    cluster.device.kind = "naive";
    cluster.strategy = way_.strategy;
    cluster.links.kind = way_.link;
    cluster.links.wire = way_.wire;
    cluster.train.accumulate = way_.accumulate;
    return cluster;
  }
  int workers() const { return int(ports_.addresses().size()); }

 private:
  const JobWay way_;
  const HeldPorts ports_;
  std::optional<Served> served_;
};

/// The losses of a worker, and the value of variable 1 at the end.
struct Learned {
  std::vector<double> losses;
  Tensor last;
};

/// Lets each worker make `steps` own steps on its part of each batch.
std::vector<Learned> train_all(const ExternalJob& job, bool table, std::int64_t first,
                               std::int64_t steps, const RunOptions& run,
                               const MinimizeOptions& options = {}) {
  std::vector<std::future<Learned>> workers;
  workers.reserve(std::size_t(job.workers()));
  for (int worker = 0; worker < job.workers(); ++worker) {
    workers.push_back(std::async(std::launch::async, [&, worker] {
      ExternalTrainee model(table, worker, job.workers());
      ExternalStore store(model.variables(), kRule, job.cluster(worker), run,
                          {.minimize = options});
      Learned made;
      made.losses = model.train(store, first, steps);
      store.with_session([](Session& session) { session.finish_training(); });
      made.last = store.read(1);
      return made;
    }));
  }
  std::vector<Learned> all;
  all.reserve(workers.size());
  for (auto& worker : workers) all.push_back(worker.get());
  return all;
}

Learned train_alone(bool table, std::int64_t steps, int accumulate,
                    const MinimizeOptions& options = {}) {
  Cluster cluster;
  cluster.threads = 1;
  cluster.device.kind = "naive";
  cluster.train.accumulate = accumulate;
  ExternalTrainee model(table);
  ExternalStore store(model.variables(), kRule, cluster, quiet(), {.minimize = options});
  Learned made;
  made.losses = model.train(store, 0, steps);
  made.last = store.read(1);
  return made;
}

class ExternalStoreJobs : public ::testing::TestWithParam<JobWay> {};
INSTANTIATE_TEST_SUITE_P(
    Strategies, ExternalStoreJobs,
    ::testing::Values(
        JobWay{"async", {.name = "async"}},
        JobWay{"async_tcp", {.name = "async"}, true, false, "tcp"},
        JobWay{"ssp", {.name = "ssp", .staleness = 1}},
        JobWay{"sync", {.name = "sync"}, true, true},
        JobWay{"sync_tcp", {.name = "sync"}, true, true, "tcp"},
        JobWay{"sync_rounded", {.name = "sync"}, true, false, "tcp", DType::kBFloat16},
        JobWay{"sync_accumulated", {.name = "sync"}, true, true, "shm", DType::kFloat32, 2},
        JobWay{"hybrid", {.name = "hybrid"}, true, true},
        JobWay{"allreduce", {.name = "allreduce"}, false, true},
        JobWay{"allreduce_tcp", {.name = "allreduce"}, false, true, "tcp"},
        JobWay{"local_sgd", {.name = "local_sgd", .local_steps = 4}},
        JobWay{"local_sgd_without_ps", {.name = "local_sgd", .local_steps = 4}, false}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_P(ExternalStoreJobs, TwoWorkersLearnFromDenseVariablesAndRows) {
  constexpr std::int64_t kSteps = 60;
  const JobWay& way = GetParam();
  for (const float clip_norm : {0.0f, 0.2f}) {
    const MinimizeOptions options{.clip_norm = clip_norm};
    const ExternalJob job(way, 2);
    const std::vector<Learned> both = train_all(job, true, 0, kSteps, quiet(), options);
    const Learned whole = train_alone(true, kSteps, way.accumulate, options);
    for (const Learned& one : both) ASSERT_EQ(one.losses.size(), std::size_t(kSteps));
    const std::vector<double>& losses = both[0].losses;
    EXPECT_LT(std::accumulate(losses.end() - 10, losses.end(), 0.0),
              0.8 * std::accumulate(losses.begin(), losses.begin() + 10, 0.0));
    if (!way.as_one) continue;
    for (std::size_t i = 0; i < whole.losses.size(); ++i) {
      const double mean = (both[0].losses[i] + both[1].losses[i]) / 2;
      ASSERT_NEAR(mean, whole.losses[i], 1e-4 * whole.losses[i]) << "step " << i;
    }
  }
}

TEST_P(ExternalStoreJobs, WorkersWithOtherVariablesAreRefusedInWords) {
  const ExternalJob job(GetParam(), 2);
  std::vector<std::future<std::string>> workers;
  workers.reserve(2);
  for (int worker = 0; worker < 2; ++worker) {
    workers.push_back(std::async(std::launch::async, [&, worker]() -> std::string {
      Cluster cluster = job.cluster(worker);
      cluster.links.join_timeout_s = 1;
      try {
        const Tensor initial(DType::kFloat32, {4, 2 + worker});
        const Tensor table(DType::kFloat32, {4, 2});
        const ExternalStore store({{.name = "embedding", .initial = table, .most_rows = 2},
                                   {.name = "layer.weight", .initial = initial}},
                                  kRule, cluster, quiet());
        return "";
      } catch (const Error& error) {
        return error.what();
      }
    }));
  }
  const std::string first = workers[0].get(), second = workers[1].get();
  if (GetParam().has_ps && GetParam().strategy.name != "hybrid") {
    EXPECT_THAT(first + second, HasSubstr("the chief has 'layer.weight float32 (4,2) "));
  } else {
    EXPECT_THAT(first + second, HasSubstr("its variables differ from those of worker:0"));
  }
}

class ExternalStoreJobsTest : public ::testing::Test {
 protected:
  const JobWay sync_{"sync", {.name = "sync"}};
  const JobWay allreduce_{"allreduce", {.name = "allreduce"}, false};
};

TEST_F(ExternalStoreJobsTest, OneWorkerOfAPsTrainsAsOneProcessBitForBit) {
  const ExternalJob job({"async", {.name = "async"}}, 1);
  const Learned one = train_all(job, true, 0, 12, quiet()).front();
  const Learned alone = train_alone(true, 12, 1);
  EXPECT_EQ(one.losses, alone.losses);
}

TEST_F(ExternalStoreJobsTest, GoesOnFromACheckpointWithAnyNumberOfTasks) {
  const TemporaryFolder folder;
  const Learned unbroken = train_alone(true, 12, 1);
  RunOptions run = quiet(4);
  run.out = folder.path("out");
  const ExternalJob two(sync_, 2);
  train_all(two, true, 0, 100, run);
  run.resume = true;
  run.steps = 8;
  const ExternalJob three(allreduce_, 3);
  train_all(three, true, 4, 100, run);
  run.steps = 12;
  ExternalTrainee model(true);
  Cluster alone;
  alone.device.kind = "naive";
  alone.threads = 1;
  ExternalStore store(model.variables(), kRule, alone, run);
  const std::vector<double> rest = model.train(store, 8, 100);
  ASSERT_EQ(rest.size(), 4U);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    EXPECT_NEAR(rest[i], unbroken.losses[8 + i], 1e-4 * rest[i]) << i;
  }
}

TEST_F(ExternalStoreJobsTest, AWorkerThatAbandonsItsStepIsLostAndTheOtherGoesOn) {
  const ExternalJob job(sync_, 2);
  std::promise<void> lost;
  auto first = std::async(std::launch::async, [&] {
    ExternalTrainee model(false, 0, 2);
    ExternalStore store(model.variables(), kRule, job.cluster(0), quiet());
    std::size_t made = model.train(store, 0, 3).size();
    lost.get_future().wait();
    made += model.train(store, 3, 5).size();
    return made;
  });
  {
    ExternalTrainee model(false, 1, 2);
    ExternalStore store(model.variables(), kRule, job.cluster(1), quiet());
    EXPECT_EQ(model.train(store, 0, 3).size(), 3U);
    ASSERT_TRUE(store.begin_step());
    store.abandon("its data is bad");
  }
  lost.set_value();
  EXPECT_EQ(first.get(), 8U);
}

// The other worker has begun the step, too, and goes on with it alone.
TEST_F(ExternalStoreJobsTest, AnInterruptEndsAWaitForTheSumsAndSavesWhatWasFinished) {
  const TemporaryFolder folder;
  const ExternalJob job(allreduce_, 2);
  std::promise<void> waits, over;
  auto second = std::async(std::launch::async, [&] {
    ExternalTrainee model(false, 1, 2);
    ExternalStore store(model.variables(), kRule, job.cluster(1), quiet());
    EXPECT_EQ(model.train(store, 0, 3).size(), 3U);
    EXPECT_TRUE(store.begin_step());
    waits.set_value();
    over.get_future().wait();
    store.end_step(1);
    return model.train(store, 4, 2).size();
  });
  RunOptions run = quiet();
  run.out = folder.path("out");
  ExternalTrainee model(false, 0, 2);
  ExternalStore store(model.variables(), kRule, job.cluster(0), run);
  EXPECT_EQ(model.train(store, 0, 3).size(), 3U);
  const Tensor before = store.read(1);
  waits.get_future().wait();
  auto waiting = std::async(std::launch::async, [&]() -> std::string {
    try {
      model.train(store, 3, 1);
      return "it was not interrupted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCancelled);
      return error.what();
    }
  });
  while (!store.in_step()) std::this_thread::yield();
  store.interrupt();
  EXPECT_THAT(waiting.get(), HasSubstr("worker:0 was interrupted at step 3"));
  over.set_value();
  EXPECT_EQ(second.get(), 2U);
  const auto saved = Checkpoints(folder.path("out/checkpoints")).newest_whole(WholeCheck::kSizes);
  ASSERT_TRUE(saved.whole);
  const CheckpointReader reader(saved.whole->path);
  EXPECT_EQ(reader.index().global_step, 3);
  const Tensor value = reader.read("hidden/b").value;
  EXPECT_TRUE(std::ranges::equal(value.data<float>(), before.data<float>()));
}

TEST_F(ExternalStoreJobsTest, AnInterruptEndsAWaitForTheOthers) {
  const ExternalJob job(sync_, 2);
  std::promise<void> over;
  std::promise<void> joined;
  auto second = std::async(std::launch::async, [&] {
    ExternalTrainee model(false, 1, 2);
    ExternalStore store(model.variables(), kRule, job.cluster(1), quiet());
    joined.set_value();
    over.get_future().wait();
  });
  ExternalTrainee model(false, 0, 2);
  ExternalStore store(model.variables(), kRule, job.cluster(0), quiet());
  joined.get_future().wait();
  auto waiting = std::async(std::launch::async, [&] {
    try {
      model.train(store, 0, 5);
      return ErrorCode::kInternal;
    } catch (const Error& error) {
      return error.code();
    }
  });
  while (!store.in_step()) std::this_thread::yield();
  store.interrupt();
  EXPECT_EQ(waiting.get(), ErrorCode::kCancelled);
  over.set_value();
  second.get();
}

}  // namespace
}  // namespace paceline
