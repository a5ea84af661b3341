// Batches of a session with towers: which tower gets which batch, and when.
#include <gmock/gmock.h>

#include <vector>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "train/testing/towers.h"

namespace paceline {
namespace {

using testing::ElementsAre;

TEST(TowersFeed, AnInputThatIsKeptIsKeptOnAllTowers) {
  Graph graph;
  const Value x = graph.input("x", {1}), y = graph.input("y", {1});
  const Value loss = reduce_sum(mul(mul(graph.variable("w", {1}, Initializer::constant(1)), x), y));
  Session session(minimize(loss, Sgd{0}), with_towers(2), quiet());
  std::vector<double> losses;
  for (int step = 0; step < 4; ++step) {
    const auto result = session.step([&](Feed& feed) {
      feed.data<float>(x)[0] = float(feed.step() + 1);
      if (feed.step() % 4 != 0) return;  // each second step, on the first tower
      feed.data<float>(y)[0] = float(feed.step() + 10);
      feed.keep(y);
    });
    losses.push_back(result->loss);
  }
  EXPECT_THAT(losses, ElementsAre(15, 35, 77, 105));
}

// Session::run fills the batches of the next step while towers make this one; step() does not.
TEST(TowersFeed, BatchesThatAreFilledAheadTrainAsThoseThatAreNot) {
  const auto train = [](bool ahead) {
    StateModel model;
    const TemporaryFolder folder;
    Session session(model.training(), with_towers(3), quiet());
    std::vector<std::int64_t> fed;
    const auto feed = [&](Feed& to) {
      std::int64_t& batch = to.position().numbers["batch"];
      fed.push_back(batch++);
      EXPECT_EQ(to.step(), fed.back());
      to.normal(model.x);
    };
    session.add(StopAtStep(5));
    if (ahead) session.run(feed);
    while (!session.ended() && session.step(feed)) {
    }
    EXPECT_EQ(session.position().numbers.at("batch"), 15) << "those read ahead are not counted";
    EXPECT_EQ(fed.size(), ahead ? 18U : 15U);
    return session.last_step().loss;
  };
  EXPECT_EQ(train(true), train(false));
}

struct EndsAtStep : Hook {
  explicit EndsAtStep(std::int64_t step) : last(step) {}
  bool after_step(Session&, const StepResult& result) override { return result.step != last; }
  std::int64_t last;
};

TEST(TowersFeed, ARunGoesOnWithTheBatchesThatWereFilledAhead) {
  StateModel model;
  Session session(model.training(), with_towers(2), quiet());
  std::vector<float> fed;
  const auto feed = [&](Feed& to) {
    if (fed.size() == 7) {
      fed.push_back(-1);
      return to.stop();
    }
    fed.push_back(float(to.step()));
    to.data<float>(model.x)[0] = fed.back();
  };
  session.add(EndsAtStep(2));
  EXPECT_FALSE(session.run(feed));
  EXPECT_THAT(fed, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_TRUE(session.run(feed)) << "the feed stops, with a batch for one tower";
  EXPECT_EQ(session.last_step().step, 3);
}

TEST(TowersFeed, WhatAFeedThrowsAheadIsThrownByTheStepOfThatBatch) {
  StateModel model;
  Session session(model.training(), with_towers(2), quiet());
  EXPECT_EQ(error_of(ErrorCode::kDataLoss,
                     [&] {
                       session.run([&](Feed& feed) {
                         if (feed.step() == 5) throw Error(ErrorCode::kDataLoss, "no such batch");
                         feed.data<float>(model.x)[0] = 1;
                       });
                     }),
            "no such batch");
  EXPECT_EQ(session.last_step().step, 2);
}

TEST(TowersFeed, AFeedThatStopsForOneTowerMakesNoStep) {
  StateModel model;
  Session session(model.training(), with_towers(3), quiet());
  std::int64_t left = 7;
  EXPECT_TRUE(session.run([&](Feed& feed) {
    if (left-- == 0) return feed.stop();
    feed.data<float>(model.x)[0] = 1;
  }));
  EXPECT_EQ(session.last_step().step, 2);
}

}  // namespace
}  // namespace paceline
