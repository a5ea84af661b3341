#include "base/philox.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline {
namespace {

// The published known answers of Random123: tests/kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ULL, ~0ULL, ~0ULL),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UnitFloatsAreBelowOne) {
  EXPECT_EQ(to_unit_float(0), 0.0f);
  EXPECT_EQ(to_unit_float(0x80000000), 0.5f);
  EXPECT_LT(to_unit_float(0xffffffff), 1.0f);
}

TEST(Philox, KeysOfSeedsAndNamesDoNotMeet) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const char* name : {"", "a", "b", "ab", "ba", "layer1/w", "layer1/b", "layer2/w"}) {
      keys.insert(random_key(seed, name));
    }
  }
  EXPECT_EQ(keys.size(), 800U);
}

}  // namespace
}  // namespace paceline
