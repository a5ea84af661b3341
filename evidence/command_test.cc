// Tests the command `paceline-evidence` as a user runs it.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Finished run_evidence(Words arguments) {
  arguments.insert(arguments.begin(), PACELINE_EVIDENCE_COMMAND);
  Process process(arguments);
  const int status = process.wait_exit(std::chrono::seconds(600));
  return {status, process.output()};
}

TEST(Evidence, HelpNamesItsPartsAndAMistakeTheNearest) {
  EXPECT_THAT(run_evidence({"--help"}).output,
              AllOf(HasSubstr("reports"), HasSubstr("predictions")));
  EXPECT_THAT(run_evidence({"predictions", "--help"}).output, HasSubstr("--minutes M"));
  EXPECT_THAT(run_evidence({"foresight", "--help"}).output,
              AllOf(HasSubstr("is now called predictions"), HasSubstr("--minutes M")));
  const Finished wrong = run_evidence({"report"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.output, HasSubstr("unknown part 'report'; did you mean 'reports'?"));
}

TEST(Evidence, ReportsPutARowBesideItsBoundAndSayWhatThatFollowsFrom) {
  const TemporaryFolder folder;
  const Finished run = run_evidence({"reports", "--only", "fetch, 2 workers", "--repeat", "2",
                                     "--json", folder.path("figures.json")});
  ASSERT_EQ(run.status, 0) << run.output;
  const nlohmann::json figures =
      nlohmann::json::parse(std::ifstream(folder.path("figures.json")))["figures"];
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0]["unit"], "batches/s");
  EXPECT_GT(figures[0]["value"]["median"], 0);
  EXPECT_GT(figures[0]["beside"]["ratio"]["median"], 0);
  EXPECT_EQ(figures[0]["beside"]["terms"][0]["what"], "the device");
}

TEST(Evidence, ReportsSayBeforeTheyBeginHowLongTheyTake) {
  const Finished run = run_evidence({"reports", "--only", "fetch, 1 worker", "--repeat", "1"});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("1 row, about"));
}

TEST(Evidence, ReportsRefuseASelectionWithoutRows) {
  const Finished unknown = run_evidence({"reports", "--only", "fetsh"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.output, AllOf(HasSubstr("--only fetsh"), HasSubstr("did you mean 'fetch'?")));
  const Finished none = run_evidence({"reports", "--only", "2 Gbit/s", "--quick"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.output, HasSubstr("--only 2 Gbit/s --quick"));
}

}  // namespace
}  // namespace paceline::testing
