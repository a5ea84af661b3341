#include "cluster/report/bound_in_words.h"

#include <gmock/gmock.h>

namespace paceline {
namespace {

Report run_of(std::vector<std::optional<double>> speeds) {
  Report run;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    TaskReport& worker = run.tasks.emplace_back();
    worker.task = "worker:" + std::to_string(i);
    worker.steps = 100;
    worker.steps_per_s = speeds[i];
  }
  run.set("bound", "steps_per_s", 50.0);
  run.set("bound", "gflops_per_s", 211.6);
  run.set("bound", "gbytes_per_s", 58.06);
  return run;
}

TEST(BoundInWords, ComparesWhatWasMadeWithTheBound) {
  EXPECT_EQ(bound_in_words(run_of({45.0})),
            "At this machine's roof, 212 GFLOP/s and 58.1 GB/s, kernels and rules would allow 50 "
            "steps/s: the run made 0.90 of that.");
}

TEST(BoundInWords, CountsAllWorkers) {
  EXPECT_EQ(bound_in_words(run_of({20.0, 22.5})),
            "At this machine's roof, 212 GFLOP/s and 58.1 GB/s, kernels and rules would allow 50 "
            "steps/s in total: the run made 0.85 of that.");
}

TEST(BoundInWords, ARoofThatARunBeatsWasMeasuredOnABusyMachine) {
  EXPECT_THAT(
      bound_in_words(run_of({60.0})),
      testing::EndsWith("the run made 1.20 of that, so other processes were running when the "
                        "roof was measured."));
}

TEST(BoundInWords, SaysNothingOfWhatIsNotKnown) {
  EXPECT_EQ(bound_in_words(run_of({20.0, std::nullopt})), "");
  Report none = run_of({45.0});
  none.sections.clear();
  EXPECT_EQ(bound_in_words(none), "");
}

}  // namespace
}  // namespace paceline
