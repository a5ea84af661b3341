// A value that cannot be is refused with the flag's name and what is allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;

struct Refused {
  std::vector<std::string> words;
  std::vector<std::string> says;
};

void PrintTo(const Refused& refused, std::ostream* out) {
  for (const std::string& word : refused.words) *out << word << ' ';
}

class Usage : public ::testing::TestWithParam<Refused> {};

TEST_P(Usage, IsRefusedWithStatusTwo) {
  const Finished run = run_paceline(GetParam().words, std::chrono::seconds(20));
  EXPECT_EQ(run.status, 2) << run.output;
  for (const std::string& text : GetParam().says) EXPECT_THAT(run.output, HasSubstr(text));
}

INSTANTIATE_TEST_SUITE_P(
    Flags, Usage,
    ::testing::Values(
        Refused{{"train", "mpl"}, {"mlp"}}, Refused{{"trian", "mlp"}, {"train"}},
        Refused{{"train", "mlp", "--stesp", "3"}, {"--stesp", "--steps"}},
        Refused{{"train", "mlp", "--steps", "x"}, {"--steps"}},
        Refused{{"train", "mlp", "--steps", "-1"}, {"--steps"}},
        Refused{{"train", "mlp", "--epochs", "3"}, {"--epochs", "mlp", "no end", "--steps"}},
        Refused{{"train", "fetch", "--epochs", "3"}, {"--epochs", "fetch", "no end", "--steps"}},
        Refused{{"train", "mlp", "--data", "x"}, {"--data", "mlp", "ptb"}},
        Refused{{"train", "fetch", "--steps", "5", "--seconds", "1"}, {"--steps", "--seconds"}},
        Refused{{"train", "mlp", "--threads", "-2"}, {"--threads"}},
        Refused{{"train", "mlp", "--workers", "2"}, {"--workers", "--ps"}},
        Refused{{"train", "mlp", "--link", "smoke"}, {"--link", "tcp"}},
        Refused{{"train", "mlp", "--device", "gpu"}, {"--device", "cpu", "sim"}},
        Refused{{"train", "mlp", "--strategy", "magic"}, {"--strategy", "async"}},
        Refused{{"train", "mlp", "--set", "learning_rat=1"}, {"learning_rate"}},
        Refused{{"train", "ptb", "--size", "huge"}, {"--size", "small"}},
        Refused{{"train", "ptb"}, {"--data", "paceline data corpus"}},
        Refused{{"train", "mlp", "--cluster", "ps=a:1;worker=a:1", "--task", "ps:0"}, {"a:1"}},
        Refused{{"train", "mlp", "--cluster", "ps=a:1;worker=b:1", "--task", "worker:7"},
                {"worker:7"}},
        Refused{{"compare"},
                {"ALONE is missing", "report of one process", "compare ALONE CLUSTER"}},
        Refused{{"compare", "a.json"}, {"CLUSTER is missing", "report of the cluster"}},
        Refused{{"inspect"}, {"CHECKPOINT is missing", "paceline inspect CHECKPOINT"}},
        Refused{{"completion", "fish"}, {"fish", "bash, zsh"}},
        Refused{{"data", "corpus", "--out", "/nowhere", "--words", "100"}, {"--words"}}));

TEST(Version, NamesWhatABugReportNeeds) {
  const Finished run = run_paceline({"version"});
  EXPECT_EQ(run.status, 0);
  for (const char* name : {"compiler", "oneDNN", "CPU", "devices", "links"})
    EXPECT_THAT(run.output, HasSubstr(name));
}

TEST(Help, TrainModelListsItsHyperParameters) {
  const Finished run = run_paceline({"train", "mlp", "--help"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.output, HasSubstr("learning_rate"));
  EXPECT_THAT(run.output, HasSubstr("--hidden"));
}

}  // namespace
}  // namespace paceline::testing
