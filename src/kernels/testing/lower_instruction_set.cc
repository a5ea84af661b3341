// Runs this program's tests with the instruction set that PACELINE_TEST_INSTRUCTION_SET names
// (cmake/Rooms.cmake). On a machine without that set it skips them, and says so.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cpu/instruction_set.h"

namespace paceline {
namespace {

class LowerInstructionSet : public testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("PACELINE_TEST_INSTRUCTION_SET");
    if (name == nullptr) return;
    if (!limit_instruction_set(name)) GTEST_SKIP() << "this machine has no " << name;
    ASSERT_TRUE(limit_onednn_instruction_set(name));
    ASSERT_EQ(instruction_set(), name);
  }
};

const testing::Environment* const lower_instruction_set =
    testing::AddGlobalTestEnvironment(new LowerInstructionSet);

}  // namespace
}  // namespace paceline
