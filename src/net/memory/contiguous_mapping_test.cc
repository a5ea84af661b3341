#include "net/memory/contiguous_mapping.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::size_t kPage = ContiguousMapping::kPageBytes;

TEST(ContiguousMapping, ShowsPartsOfSeveralMemoriesOneAfterTheOther) {
  const auto first = SharedMemory::create(3 * kPage), second = SharedMemory::create(2 * kPage + 7);
  ContiguousMapping joined(3 * kPage + 7);
  joined.map(0, first, kPage, 2 * kPage);
  joined.map(2 * kPage, second, kPage, kPage + 7);
  std::ranges::fill(first->bytes().subspan(kPage), std::byte{1});
  std::ranges::fill(second->bytes().subspan(kPage), std::byte{2});
  const std::byte* const data = joined.data();
  EXPECT_EQ(std::count(data, data + 2 * kPage, std::byte{1}), 2 * kPage);
  EXPECT_EQ(std::count(data + 2 * kPage, data + 3 * kPage + 7, std::byte{2}), kPage + 7);
}

TEST(ContiguousMapping, OutlivesTheMemories) {
  auto memory = SharedMemory::create(kPage);
  memory->bytes()[5] = std::byte{5};
  ContiguousMapping joined(kPage);
  joined.map(0, memory, 0, kPage);
  memory.reset();
  EXPECT_EQ(joined.data()[5], std::byte{5});
}

TEST(ContiguousMapping, MoreThanTheMachineGivesIsRefused) {
  EXPECT_THROW(ContiguousMapping(std::size_t{1} << 60), Error);
}

}  // namespace
}  // namespace paceline
