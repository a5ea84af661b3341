#include "net/accept/socket_acceptor.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline {
namespace {

TEST(Refusals, AreToldWithTheCallerAndWhyButNotByThousands) {
  std::vector<std::string> lines;
  Refusals refusals([&](const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 1000; ++i) refusals.add("10.0.0.9:4444", "it offers no key");
  EXPECT_EQ(lines.front(), "10.0.0.9:4444 was refused: it offers no key");
  EXPECT_GE(lines.size(), 5u);
  EXPECT_LT(lines.size(), 500u) << "unless the calls took minutes";
}

TEST(Refusals, ThatNobodyWantsToHearOfAreNotTold) { Refusals({}).add("10.0.0.9:4444", "no key"); }

}  // namespace
}  // namespace paceline
