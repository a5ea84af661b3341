#include "evidence/row_progress.h"

#include <gtest/gtest.h>

namespace paceline::bench {
namespace {

using std::chrono::seconds;

TEST(RowProgress, SaysBeforehandHowLongAllRowsTake) {
  EXPECT_EQ(plan_text({10, 20, 12.5}), "3 rows, about 43 s");
  EXPECT_EQ(plan_text({60, 61}), "2 rows, about 3 min");
  EXPECT_EQ(plan_text({7}), "1 row, about 7 s");
}

TEST(RowProgress, ExpectsOfLaterRowsThePaceOfEarlierOnes) {
  const RowProgress progress({10, 20, 30});
  EXPECT_EQ(progress.text(0, seconds(0)), "row 1 of 3, about 1 min left");
  EXPECT_EQ(progress.text(1, seconds(20)), "row 2 of 3, about 2 min left");
  EXPECT_EQ(progress.text(2, seconds(30)), "row 3 of 3, about 30 s left");
}

}  // namespace
}  // namespace paceline::bench
