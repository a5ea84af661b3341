#include "cluster/report/circumstances.h"

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
  EXPECT_THAT(here.command, HasSubstr("cluster_tests"));
}

TEST(Circumstances, QuoteWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_words({"a b", "--x=1", "it's", ""}), "'a b' --x=1 'it'\\''s' ''");
}

}  // namespace
}  // namespace paceline
