#include "params/shard/chunk_versions.h"

#include <gtest/gtest.h>

#include <optional>

namespace paceline {
namespace {

TEST(ChunkVersions, AChunkThatIsBeingWrittenIsNotCopied) {
  std::uint64_t version = 0;
  const std::byte from[] = {std::byte{1}, std::byte{2}};
  std::byte to[2] = {};
  std::optional<ChunkWriting> writing(version);
  EXPECT_FALSE(copy_chunk(version, from, to));
  writing.reset();
  EXPECT_TRUE(copy_chunk(version, from, to));
  EXPECT_EQ(to[1], std::byte{2});
  EXPECT_EQ(version, 2u);
}

TEST(ChunkVersions, EveryChunkHasOne) {
  EXPECT_EQ(version_count(0), 1u);
  EXPECT_EQ(version_count(kVersionedBytes), 1u);
  EXPECT_EQ(version_count(kVersionedBytes + 1), 2u);
}

}  // namespace
}  // namespace paceline
