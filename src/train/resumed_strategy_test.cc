// Every strategy goes on from the checkpoint of every other one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <future>
#include <latch>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "net/held_ports.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "train/testing/quiet.h"
#include "train/testing/served.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

constexpr int kRowsRead = 6, kWords = 16, kWordWidth = 4;
constexpr std::int64_t kSaved = 24, kEnd = 60;

struct Way {
  const char* name;
  bool ps = false, workers = false;
  std::function<void(Cluster&)> set = [](Cluster&) {};
  bool local_steps = false;
};

std::function<void(Cluster&)> strategy(const char* name) {
  return [name](Cluster& cluster) { cluster.strategy.name = name; };
}

std::function<void(Cluster&)> local_steps(const std::function<void(Cluster&)>& more) {
  return [more](Cluster& cluster) {
    cluster.strategy.name = "local_sgd";
    cluster.strategy.local_steps = 4;
    more(cluster);
  };
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"alone"},
      {"async", true, true, strategy("async")},
      {"accumulated", true, true, [](Cluster& cluster) { cluster.train.accumulate = 2; }},
      {"ssp", true, true, strategy("ssp")},
      {"sync", true, true, strategy("sync")},
      {"sync_with_backups", true, true,
       [](Cluster& cluster) {
         cluster.strategy.name = "sync";
         cluster.strategy.replicas = 1;
       }},
      {"hybrid", true, true, strategy("hybrid")},
      {"allreduce", false, true, strategy("allreduce")},
      {"local", true, true, local_steps([](Cluster&) {}), true},
      {"local_fragments", true, true, local_steps([](Cluster& cluster) {
         cluster.strategy.local_steps = 10;
         cluster.strategy.outer_fragments = 2;
       }),
       true},
      {"local_means", true, true,
       local_steps([](Cluster& cluster) { cluster.strategy.outer_momentum = 0; }), true},
      {"local_async", true, true,
       local_steps([](Cluster& cluster) { cluster.strategy.outer_async = true; }), true},
      {"local_allreduce", false, true, local_steps([](Cluster&) {}), true},
  };
  return all;
}

struct Begun {
  std::int64_t global_step = 0;
  Tensor value;
};

/// Trains a worker that looks words up and learns by Adam, once all workers have begun. Returns the
/// state that the worker begins with.
Begun train_worker(const Cluster& cluster, const RunOptions& run, std::latch& all) {
  Graph graph;
  const Value ids = graph.input("ids", {kRowsRead}, DType::kInt32),
              y = graph.input("y", {kRowsRead, 2});
  const Value h = embedding_lookup(graph.variable("words", {kWords, kWordWidth}), ids);
  Session session(minimize(mean_squared_error(dense(h, 2, "out"), y), Adam{.learning_rate = 1e-2f}),
                  cluster, run);
  Begun begun{session.last_step().global_step, session.variables().get("words")};
  all.arrive_and_wait();
  session.run([&](Feed& feed) {
    const auto words = feed.data<std::int32_t>(ids);
    const auto targets = feed.data<float>(y);
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = std::int32_t((feed.step() * 5 + std::int64_t(i) * 3) % kWords);
    }
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = float(std::sin(double(i)));
  });
  EXPECT_GE(session.last_step().global_step, *run.steps);
  EXPECT_TRUE(std::isfinite(session.last_step().loss));
  return begun;
}

/// Trains by this strategy. Returns the state that each worker begins with.
std::vector<Begun> train(const Way& way, const RunOptions& run, int count = 2) {
  if (!way.workers) {
    Cluster alone;
    alone.threads = 1;
    way.set(alone);
    std::latch one(1);
    return {train_worker(alone, run, one)};
  }
  const HeldPorts ports(count);
  std::optional<Served> served;
  if (way.ps) served.emplace(ports.addresses());
  std::latch all(count);
  std::vector<std::future<Begun>> workers;
  workers.reserve(std::size_t(count));
  for (int worker = 0; worker < count; ++worker) {
    Cluster cluster;
    if (way.ps) {
      cluster = served->cluster(worker);
    } else {
      cluster.process = Cluster::Process::kTask;
      cluster.spec.workers = ports.addresses();
      cluster.task = {TaskId::Role::kWorker, worker};
      cluster.cluster_id = "test";
      cluster.threads = 1;
    }
    way.set(cluster);
    workers.push_back(std::async(std::launch::async,
                                 [cluster, run, &all] { return train_worker(cluster, run, all); }));
  }
  std::vector<Begun> begun;
  begun.reserve(std::size_t(count));
  for (auto& worker : workers) begun.push_back(worker.get());
  return begun;
}

RunOptions in_folder(const TemporaryFolder& folder, std::int64_t steps) {
  RunOptions run = quiet(steps);
  run.out = folder.path();
  run.summary_every = {};
  run.keep = 10;
  return run;
}

CheckpointReader newest(const std::string& folder) {
  return CheckpointReader(find_checkpoint(folder, WholeCheck::kChecksums).path);
}

/// Returns Adam's step count of `words` that this worker keeps for its local steps; −1 if none.
std::int64_t count_of(const CheckpointReader& checkpoint, const SavedTask& task) {
  for (const NamedTensor& local : checkpoint.read_local(task)) {
    if (local.name == "inner/words/t") return local.tensor.item<std::int64_t>();
  }
  return -1;
}

/// Returns Adam's step count of `words`: that of the first worker if the workers make local steps,
/// else that of the variable.
std::int64_t count_of(const CheckpointReader& checkpoint, const Way& way) {
  if (way.local_steps) return count_of(checkpoint, checkpoint.index().tasks.front());
  return checkpoint.read("words").slots.at(2).item<std::int64_t>();
}

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class ResumedStrategy : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(From, ResumedStrategy, ::testing::ValuesIn(ways()),
                         [](const auto& from) { return std::string(from.param.name); });

TEST_P(ResumedStrategy, IsReadByEachStrategy) {
  const Way& from = GetParam();
  const TemporaryFolder saved;
  train(from, in_folder(saved, kSaved));
  const CheckpointReader before = newest(saved.path());
  const Tensor words = before.read("words").value;
  const std::int64_t count = count_of(before, from);
  ASSERT_GT(count, 0);
  for (const Way& to : ways()) {
    SCOPED_TRACE(std::string(from.name) + " → " + to.name);
    const TemporaryFolder folder;
    std::filesystem::copy(saved.path(), folder.path(), std::filesystem::copy_options::recursive);
    RunOptions run = in_folder(folder, kEnd);
    run.resume = true;
    run.quiet = false;
    ::testing::internal::CaptureStdout();
    std::vector<Begun> begun;
    EXPECT_NO_THROW(begun = train(to, run));
    const std::string said = ::testing::internal::GetCapturedStdout();
    if (begun.empty()) continue;
    EXPECT_TRUE(std::ranges::equal(begun[0].value.data<float>(), words.data<float>()));
    EXPECT_LE(begun[0].global_step, before.index().global_step);
    EXPECT_GT(begun[0].global_step, before.index().global_step - 10);
    const CheckpointReader after = newest(folder.path());
    EXPECT_GE(after.index().global_step, kEnd);
    EXPECT_GT(count_of(after, to), count);
    EXPECT_THAT(said, HasSubstr("Goes on from step "));
    const auto says = [&](const char* line) { return said.find(line) != std::string::npos; };
    const bool was = from.local_steps, is = to.local_steps;
    const char* const anew =
        "the checkpoint is not of local steps: each worker goes on with its "
        "slots, and those of the outer rule begin anew\n";
    const char* const left =
        "the checkpoint is of local steps: the slots of worker:0 become those "
        "of all, and those of the outer rule are left out\n";
    EXPECT_EQ(says(anew), !was && is) << said;
    EXPECT_EQ(says(left), was && !is) << said;
  }
}

TEST(ResumedLocalSteps, GiveTheSlotsOfTheChiefToWorkersThatTheCheckpointDoesNotHave) {
  const Way& local = *std::ranges::find(ways(), std::string("local"), &Way::name);
  const TemporaryFolder folder;
  train(local, in_folder(folder, kSaved));
  RunOptions run = in_folder(folder, kEnd);
  run.resume = true;
  train(local, run, 3);
  const CheckpointReader checkpoint = newest(folder.path());
  ASSERT_EQ(checkpoint.index().tasks.size(), 3U);
  for (const SavedTask& task : checkpoint.index().tasks) {
    EXPECT_EQ(count_of(checkpoint, task), kEnd) << task.task;
  }
}

}  // namespace
}  // namespace paceline
