#include "run/report/circumstances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(Circumstances, AreThoseOfThisProcess) {
  const Circumstances here = circumstances();
  EXPECT_THAT(here.version, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
  EXPECT_EQ(here.host, host_name());
  EXPECT_THAT(here.started, MatchesRegex("20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z"));
  EXPECT_THAT(here.command, HasSubstr("run_tests"));
}

TEST(Circumstances, OfATaskThatWasLaunchedHaveTheUsersWordsAlone) {
  const std::vector<std::string> users = {"paceline", "train", "mlp", "--workers", "2"};
  EXPECT_EQ(without_launchers_words(users), users);
  std::vector<std::string> words = users;
  words.insert(words.end(), {"--launched", "--cluster", "worker=a:1,b:1", "--task", "worker:0"});
  EXPECT_EQ(without_launchers_words(words), users);
}

TEST(Circumstances, QuoteWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_words({"a b", "--x=1", "it's", ""}), "'a b' --x=1 'it'\\''s' ''");
}

}  // namespace
}  // namespace paceline
