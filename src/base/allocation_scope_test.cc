#include "base/allocation_scope.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "base/allocation_hook.h"

namespace paceline {
namespace {

// Looks at p, since the optimiser may leave out an allocation that nothing looks at.
void keep(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

TEST(AllocationScope, CountsOurAllocationsOnEveryThread) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  const std::int64_t before = allocation_counts().ours;
  const auto block = std::make_unique<int>(1);
  keep(block.get());
  const std::vector<double> many(100);
  keep(many.data());
  EXPECT_EQ(allocation_counts().ours - before, 2);

  std::int64_t in_thread = 0;
  std::thread([&in_thread] {
    const std::int64_t start = allocation_counts().ours;
    const auto other = std::make_unique<int>(2);
    keep(other.get());
    in_thread = allocation_counts().ours - start;
  }).join();
  EXPECT_EQ(in_thread, 1);
}

TEST(AllocationScope, CountsAlignedAllocations) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  struct alignas(64) Line {
    char bytes[64];
  };
  const std::int64_t before = allocation_counts().ours;
  const auto line = std::make_unique<Line>();
  keep(line.get());
  EXPECT_EQ(allocation_counts().ours - before, 1);
}

TEST(AllocationScope, ForeignAllocationsAreCountedApart) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  const AllocationCounts before = allocation_counts();
  {
    const ForeignAllocations foreign;
    const auto block = std::make_unique<int>(1);
    keep(block.get());
  }
  const AllocationCounts after = allocation_counts();
  EXPECT_EQ(after.ours, before.ours);
  EXPECT_EQ(after.foreign - before.foreign, 1);
}

}  // namespace
}  // namespace paceline
