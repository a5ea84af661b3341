// A rule that asks for its whole variable, in a session: one process and a ps give the same losses.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/testing/custom_rules.h"
#include "paceline/error.h"
#include "train/testing/served.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

class WholeRuleSession : public SessionTest {
 protected:
  WholeRuleSession() { run_.steps = 30; }

  std::vector<double> losses(const Cluster& cluster) {
    Graph graph;
    const Value x = graph.input("x", {64, 24}), y = graph.input("y", {64, 24});
    const Value loss = mean_squared_error(dense(relu(dense(x, 48, "hidden")), 24, "out"), y);
    const MinimizeOptions options{.groups = {{.prefix = "hidden/w", .rule = muon(0.05f)},
                                             {.prefix = "out/w", .rule = muon(0.05f)}}};
    Session session(minimize(loss, Sgd{.learning_rate = 0.1f}, options), cluster, run_);
    std::vector<double> made;
    while (const auto step = session.step([&](Feed& feed) {
      feed.normal(x);
      const auto from = feed.data<float>(x), to = feed.data<float>(y);
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] * from[i];
    })) {
      made.push_back(step->loss);
    }
    return made;
  }
};

TEST_F(WholeRuleSession, LearnsAloneAndWithAPsInFramesAndInSharedMemory) {
  const std::vector<double> alone = losses(cluster_);
  ASSERT_EQ(alone.size(), 30U);
  EXPECT_LT(alone.back(), 0.8 * alone.front());
  for (const char* link : {"tcp", "auto"}) {
    const Served served;
    Cluster cluster = served.cluster();
    cluster.links.kind = link;
    const std::vector<double> there = losses(cluster);
    ASSERT_EQ(there.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_NEAR(there[i], alone[i], 1e-3 * alone[i]) << link << ", step " << i;
    }
  }
}

TEST_F(WholeRuleSession, RefusesATableOfRows) {
  Graph graph;
  const Value ids = graph.input("ids", {4}, DType::kInt32);
  const Value rows = embedding_lookup(graph.variable("table", {10, 3}), ids);
  try {
    const Session session(minimize(reduce_mean(square(rows)), muon()), cluster_, run_);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[variable table] rule muon cannot be applied by rows: it asks for the whole "
                 "variable");
  }
}

}  // namespace
}  // namespace paceline
