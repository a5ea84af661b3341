#include "evidence/joining_run.h"

#include <gtest/gtest.h>

namespace paceline::bench {
namespace {

// The second worker begins at 10 s; from then on the two share the link.
const std::vector<Series> kWorkers = {{"worker:0", {{1, 3}, {5, 3}, {11, 2}, {15, 2}}},
                                      {"worker:1", {{11, 1}, {15, 2}}}};
const std::vector<double> kAllowed = {3, 2};

TEST(Joining, AWorkerIsComparedWithWhatIsAllowedMeanwhile) {
  const KeptSpeed kept = least_kept(kWorkers, kAllowed);
  EXPECT_DOUBLE_EQ(kept.per_s, 1.5);
  EXPECT_DOUBLE_EQ(kept.allowed, 2);
  EXPECT_DOUBLE_EQ(least_kept({kWorkers[0]}, kAllowed).per_s, 2.5);
}

TEST(Joining, TheBoundFallsWhereAWorkerJoins) {
  const Series bound = allowed_over_time(kWorkers, kAllowed);
  EXPECT_EQ(bound.name, "bound");
  EXPECT_EQ(bound.points, (std::vector<std::pair<double, double>>{{0, 3}, {10, 2}, {15, 2}}));
}

}  // namespace
}  // namespace paceline::bench
