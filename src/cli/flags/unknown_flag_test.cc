#include "cli/flags/unknown_flag.h"

#include <gmock/gmock.h>

#include "cli/flags/flags.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

CommandLine line_of_a_program() {
  CommandLine line{"trainer", "Trains.", "", run_flags()};
  const std::vector<Flag> cluster = cluster_flags();
  line.flags.insert(line.flags.end(), cluster.begin(), cluster.end());
  line.flags.push_back({"--data", "DIR", "", "Program"});
  line.flags.push_back(
      {"--set", "NAME=VALUE", "", "Program", true, 1, {"learning_rate=", "momentum="}});
  return line;
}

TEST(UnknownFlag, FlagsOfOtherSystemsAreTranslated) {
  const CommandLine line = line_of_a_program();
  for (const auto& [name, here] :
       std::vector<std::pair<std::string, std::string>>{{"--data-path", "--data DIR"},
                                                        {"--train-data-path", "--data DIR"},
                                                        {"--sync-replicas", "--strategy sync"},
                                                        {"--num-gpus", "--towers N"},
                                                        {"--train-dir", "--out DIR"},
                                                        {"--log-root", "--out DIR"},
                                                        {"--output-dir", "--out DIR"},
                                                        {"--max-steps", "--steps N"},
                                                        {"--train-steps", "--steps N"},
                                                        {"--protocol", "--link"}}) {
    EXPECT_THAT(unknown_flag_hint(line, name), HasSubstr("; here it is " + here)) << name;
  }
  EXPECT_EQ(unknown_flag_hint(line, "--learning-rate"),
            "; a hyper-parameter is given as --set learning_rate=VALUE");
  EXPECT_EQ(unknown_flag_hint(line, "--sede"), "; did you mean '--seed'?");
}

TEST(UnknownFlag, AFlagThatIsGoneIsToldWithWhatToDoWithoutIt) {
  const CommandLine line = line_of_a_program();
  EXPECT_EQ(unknown_flag_hint(line, "--torn-free"),
            "; it is gone: values of one moment come from rounds, as in --strategy sync");
  EXPECT_EQ(unknown_flag_hint(line, "--outer-delay"),
            "; it is gone: as many changes count as one mean as there are workers");
}

// The hint does not name --data for a command that has no such flag.
TEST(UnknownFlag, OnlyFlagsThatThereAreAreNamed) {
  const CommandLine line{"paceline top", "", "", {{"--out", "DIR", "", "Flags"}}};
  EXPECT_EQ(unknown_flag_hint(line, "--data-path"), "");
  EXPECT_EQ(unknown_flag_hint(line, "--train-dir"), "; here it is --out DIR");
  EXPECT_EQ(unknown_flag_hint(line, "--torn-free"), "");
}

}  // namespace
}  // namespace paceline
