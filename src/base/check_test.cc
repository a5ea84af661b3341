#include "base/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/error.h"

namespace paceline {
namespace {

TEST(Check, NamesThePlaceAndTheCondition) {
  EXPECT_NO_THROW(PACELINE_CHECK(1 + 1 == 2));
  try {
    PACELINE_CHECK(1 + 1 == 3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_THAT(error.what(), testing::HasSubstr("check_test.cc"));
    EXPECT_THAT(error.what(), testing::HasSubstr("1 + 1 == 3"));
  }
}

}  // namespace
}  // namespace paceline
