// Tests of the lines and numbers in which a session tells how stale its contributions were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/temporary_folder.h"
#include "run/report/report.h"
#include "train/session_inside.h"
#include "train/testing/served.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kStaleSteps = 20;

class StaleSession : public SessionTest {
 protected:
  /// Returns a worker's cluster over TCP, where a step reads what the answers to the previous step
  /// have brought.
  static Cluster worker(const Served& served, int index) {
    Cluster cluster = served.cluster(index);
    cluster.links.kind = "tcp";
    return cluster;
  }
  /// Returns a feed. If `rising` is true, the loss rises with each step, whatever the model learns.
  std::function<void(Feed&)> feeding_with(bool rising) const {
    return [this, rising](Feed& feed) {
      std::ranges::fill(feed.data<float>(x_), 1.0f);
      std::ranges::fill(feed.data<float>(y_), rising ? 10 + float(feed.step()) : 10.0f);
    };
  }
  /// The chief makes kStaleSteps steps, and before each of them the other worker makes `between`.
  /// Returns what was printed.
  std::string train(bool rising, int between) {
    const Served served(2);
    RunOptions run = run_;
    run.quiet = false;
    run.report = folder_.path("report.json");
    ::testing::internal::CaptureStdout();
    {
      Session chief(slow_training(), worker(served, 0), run);
      Session other(slow_training(), worker(served, 1), run_);
      for (int step = 0; step < kStaleSteps; ++step) {
        chief.step([&](Feed& feed) {
          for (int i = 0; i < between; ++i) other.step(feeding_with(rising));
          feeding_with(rising)(feed);
        });
      }
      EXPECT_EQ(SessionInside(chief).staleness().contributions, kStaleSteps);
      EXPECT_EQ(SessionInside(chief).staleness().updates, (kStaleSteps - 1) * between);
    }
    return ::testing::internal::GetCapturedStdout();
  }
  Training slow_training() { return minimize(loss_, Sgd{.learning_rate = 1e-3f}); }
  const TemporaryFolder folder_;
};

TEST_F(StaleSession, ARunThatEndedAboveItsBeginningSaysSoInItsLastLine) {
  EXPECT_THAT(train(true, 2),
              HasSubstr("Its workers computed with values that were 1.9 updates of others old on "
                        "average (staleness). A lower learning rate helps"));
  const Report report = read_report(folder_.path("report.json"));
  EXPECT_EQ(report.tasks[0].staleness_mean, 38.0 / kStaleSteps);
  EXPECT_EQ(report.tasks[0].staleness_p95, 2);
}

TEST_F(StaleSession, ARunThatLearnedOrWasHardlyStaleDoesNot) {
  EXPECT_THAT(train(false, 2), Not(HasSubstr("staleness")));
  EXPECT_THAT(train(true, 1), Not(HasSubstr("staleness")));
}

}  // namespace
}  // namespace paceline
