#include "run/report/limit.h"

#include <gtest/gtest.h>

#include <set>

namespace paceline {
namespace {

TEST(Limit, HasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const LimitName& each : kLimits) {
    EXPECT_EQ(name_of(each.limit), each.name);
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
  }
}

// Files of earlier versions use these names for predicted limits.
TEST(Limit, KeepsTheNamesThatReportsHave) {
  for (const char* const name :
       {"link", "straggler", "devices", "kernels", "rules", "transport", "memory", "cores",
        "answers", "others", "exchanges", "alone", "input"}) {
    const auto* const found = std::ranges::find(kLimits, name, &LimitName::name);
    ASSERT_NE(found, std::end(kLimits)) << name;
    EXPECT_TRUE(found->predicted) << name;
  }
}

}  // namespace
}  // namespace paceline
