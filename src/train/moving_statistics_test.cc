// Tests the moving statistics of batch norm in a session and its store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/ops.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using ::testing::FloatNear;

class MovingStatisticsTest : public SessionTest {
 protected:
  MovingStatisticsTest() { run_.quiet = true; }

  /// Channel 0 is 1, 2, 3, 4; channel 1 is all 5.
  static void feed_images(Feed& feed, Value x) {
    const auto data = feed.data<float>(x);
    for (std::size_t i = 0; i < 4; ++i) data[i] = float(i + 1), data[i + 4] = 5;
  }
  static Value normalized(Graph& graph, bool training) {
    return batch_norm(graph.input("x", {1, 2, 2, 2}), "norm", {.training = training});
  }
};

TEST_F(MovingStatisticsTest, AStepMovesThemAndAnEvaluationReadsThem) {
  Graph graph, evaluation;
  const Value y = normalized(graph, true), z = normalized(evaluation, false);
  Session session(minimize(reduce_mean(square(y)), Sgd{0}, {.clip_norm = 1e-3f}), cluster_, run_);
  session.share(evaluation);
  for (int step = 0; step < 2; ++step) {
    session.step([&](Feed& feed) { feed_images(feed, graph.find("x")); });
  }
  const Tensor mean = session.variables().get("norm/moving_mean");
  const Tensor variance = session.variables().get("norm/moving_variance");
  EXPECT_THAT(mean.data<float>()[0], FloatNear(0.19f * 2.5f, 1e-6f));
  EXPECT_THAT(mean.data<float>()[1], FloatNear(0.19f * 5, 1e-6f));
  EXPECT_THAT(variance.data<float>()[0], FloatNear(0.81f + 0.19f * 1.25f, 1e-6f));
  EXPECT_THAT(variance.data<float>()[1], FloatNear(0.81f, 1e-6f));
  const Tensor normal =
      session.evaluate(z, [&](Feed& feed) { feed_images(feed, evaluation.find("x")); });
  EXPECT_THAT(normal.data<float>()[4],
              FloatNear((5 - 0.19f * 5) / std::sqrt(0.81f + 1e-3f), 1e-5f));
}

}  // namespace
}  // namespace paceline
