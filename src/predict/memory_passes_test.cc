#include "predict/memory_passes.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(MemoryPasses, MoveWhatTheySay) {
  MemoryPasses passes(2);
  passes.read();
  passes.update();
  EXPECT_EQ(passes.update_bytes(), 2 * passes.read_bytes());
  EXPECT_GT(passes.read_bytes(), double(cache_bytes()));
}

}  // namespace
}  // namespace paceline
