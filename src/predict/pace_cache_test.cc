#include "predict/pace_cache.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "base/text_file.h"

namespace paceline {
namespace {

TEST(PaceCacheTest, KeepsPacesByTheirKey) {
  const TemporaryFolder folder;
  const PaceCache cache(folder.path() + "/below/pace.json");
  EXPECT_EQ(cache.find("a"), std::nullopt);
  cache.keep("a", 0.5);
  cache.keep("b", 0.25);
  EXPECT_EQ(cache.find("a"), 0.5);
  EXPECT_EQ(cache.find("b"), 0.25);
  cache.keep("a", 0.75);
  EXPECT_EQ(cache.find("a"), 0.75);
}

TEST(PaceCacheTest, ADamagedFileCountsAsEmpty) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/pace.json";
  for (const char* text : {"{", "[]", R"({"processor": "another", "paces": {"a": 1}})"}) {
    write_text_file("the pace", path, text);
    EXPECT_EQ(PaceCache(path).find("a"), std::nullopt);
  }
  PaceCache("").keep("a", 1);
  EXPECT_EQ(PaceCache("").find("a"), std::nullopt);
}

}  // namespace
}  // namespace paceline
