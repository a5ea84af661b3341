#include "base/machine_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

TEST(MachineMemory, IsComparedWithWhatIsNeeded) {
  const double there = double(memory_of_machine());
  EXPECT_GT(there, 1e6);
  check_fits_machine("[test] this needs", 0);
  EXPECT_THAT(
      error_of(ErrorCode::kInvalidArgument,
               [&] { check_fits_machine("[test] this needs", 1e6 * there); }),
      testing::MatchesRegex("\\[test\\] this needs [0-9,]+ MB, this machine has [0-9,]+ MB"));
  // What the process has already counts too.
  EXPECT_THROW(check_fits_machine("[test] this needs", there), Error);
}

}  // namespace
}  // namespace paceline
