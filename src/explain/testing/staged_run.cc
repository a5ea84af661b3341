#include "explain/testing/staged_run.h"

#include <gmock/gmock.h>

#include "explain/explain.h"

namespace paceline {

void expect_told(std::span<const StagedRun> runs) {
  for (const StagedRun& staged : runs) {
    SCOPED_TRACE(staged.name);
    Report run = sample_report();
    staged.stage(run);
    const Finding finding = explain(run);
    EXPECT_EQ(name_of(finding.cause), name_of(staged.cause)) << explanation(run);
    EXPECT_EQ(finding.task, staged.task) << explanation(run);
    EXPECT_THAT(explanation(run), ::testing::HasSubstr(staged.words));
    EXPECT_EQ(finding.is_alarm(), staged.cause != Limit::kNothing);
  }
}

}  // namespace paceline
