// A session with gradient accumulation: what it reports, saves, and how it goes on.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <future>

#include "base/temporary_folder.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "params/server/server.h"

namespace paceline {
namespace {

/// A ps in a thread, for one session.
class Served {
 public:
  Served() : stop_(eventfd(0, EFD_CLOEXEC)) {
    std::promise<std::string> address;
    ServerOptions options;
    options.spec = {.ps = {"127.0.0.1:0"}, .workers = {"127.0.0.1:1"}};
    options.cluster_id = "accumulate";
    options.task = {TaskId::Job::kPs, 0};
    options.stop_fd = stop_;
    options.listening = [&](const std::string& at) { address.set_value(at); };
    serving_ = std::async(std::launch::async, [options] { return serve(options); });
    cluster.role = Cluster::Role::kTask;
    cluster.spec = {.ps = {address.get_future().get()}, .workers = {"127.0.0.1:1"}};
    cluster.cluster_id = "accumulate";
    cluster.threads = 1;
    cluster.accumulate = 4;
  }
  ~Served() {
    eventfd_write(stop_, 1);
    serving_.wait();
    close(stop_);
  }
  Cluster cluster;

 private:
  int stop_;
  std::future<ServerSummary> serving_;
};

Cluster alone() {
  Cluster cluster;
  cluster.threads = 1;
  cluster.accumulate = 4;
  return cluster;
}

/// What a training of some steps saw: the loss of each own step, by its number.
struct Seen {
  std::vector<std::int64_t> steps;
  std::vector<double> losses;
  std::int64_t global_step = 0;
};

struct Note : Hook {
  explicit Note(Seen& note_in) : seen(note_in) {}
  bool after_step(Session&, const StepResult& result) override {
    seen.losses.push_back(result.loss);
    seen.global_step = result.global_step;
    return true;
  }
  Seen& seen;
};

// Until so many own steps are fed, or RunOptions ends it.
Seen train(const Cluster& cluster, const RunOptions& run, std::int64_t feeds) {
  Graph graph;
  const Value x = graph.input("x", {2, 3});
  const Value h = dense(x, 2, "layer");
  Session session(minimize(reduce_mean(square(sub(h, graph.input("y", {2, 2})))), Sgd{0.1f}),
                  cluster, run);
  Seen seen;
  session.add(Note(seen));
  session.run([&](Feed& feed) {
    if (feeds-- == 0) return feed.stop();
    seen.steps.push_back(feed.step());
    const auto values = feed.data<float>(x);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = float((std::size_t(feed.step()) * 5 + i * i) % 7) / 7;
    }
  });
  return seen;
}

RunOptions quiet() {
  RunOptions run;
  run.quiet = true;
  return run;
}

TEST(AccumulateSession, StepsAreGlobalStepsAndEveryLossIsThatOfOneProcess) {
  RunOptions run = quiet();
  run.steps = 15;
  Served served;
  const Seen near = train(alone(), run, 1000), far = train(served.cluster, run, 1000);
  EXPECT_EQ(near.steps.size(), 60U);
  EXPECT_EQ(near.global_step, 15);
  EXPECT_EQ(near.losses, far.losses);
}

// 10 own steps end in the middle of the third window: what it has added up is dropped, and training
// goes on with that window's first step, as if it had ended with the one before.
TEST(AccumulateSession, ResumesAtTheBeginningOfTheWindowThatWasUnderWay) {
  for (const bool with_ps : {false, true}) {
    const auto cluster = [&](Served& served) { return with_ps ? served.cluster : alone(); };
    const Seen unbroken = train(alone(), quiet(), 20);
    const TemporaryFolder folder;
    RunOptions run = quiet();
    run.out = folder.path();
    run.summary_every = {};
    {
      Served served;
      EXPECT_EQ(train(cluster(served), run, 10).global_step, 2);
    }
    run.resume = true;
    Served served;
    const Seen resumed = train(cluster(served), run, 12);
    EXPECT_EQ(resumed.steps.front(), 8);
    EXPECT_EQ(resumed.global_step, 5);
    EXPECT_EQ(resumed.losses, std::vector(unbroken.losses.begin() + 8, unbroken.losses.end()));
  }
}

}  // namespace
}  // namespace paceline
