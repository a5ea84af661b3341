#include "predict/machine_facts.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/temporary_folder.h"

namespace paceline {
namespace {

class RoofCacheTest : public ::testing::Test {
 protected:
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    std::ofstream(path_) << text;
  }
  // Replaces the first occurrence of `from` in the file.
  void replace(const std::string& from, const std::string& to) const {
    std::string all = text();
    ASSERT_NE(all.find(from), std::string::npos) << all;
    write(all.replace(all.find(from), from.size(), to));
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/cache/roof.json";
  double others_share_ = 0;  // what the next measurement will find
  int measured_ = 0;
  // The tests choose the share of other programs, so programs that run beside the tests do not
  // change it.
  RoofCache cache_{path_, [this](DType precision, int threads) {
                     ++measured_;
                     Roof roof = measure_roof(precision, threads);
                     roof.others_share = others_share_;
                     return roof;
                   }};
};

TEST_F(RoofCacheTest, WhatWasMeasuredBesideOthersIsMeasuredAgain) {
  others_share_ = 0.4;
  EXPECT_EQ(cache_.roof(DType::kFloat32, 1).others_share, 0.4);
  EXPECT_EQ(cache_.find(DType::kFloat32, 1)->others_share, 0.4);
  others_share_ = 0;
  EXPECT_EQ(cache_.roof(DType::kFloat32, 1).others_share, 0);
  cache_.roof(DType::kFloat32, 1);
  EXPECT_EQ(measured_, 2);
  replace("\"others_share\"", "\"other\"");
  cache_.roof(DType::kFloat32, 1);
  EXPECT_EQ(measured_, 3) << "the version did not note it";
}

TEST_F(RoofCacheTest, MeasuresOnceAndKeepsIt) {
  EXPECT_FALSE(cache_.find(DType::kFloat32, 1));
  const Roof roof = cache_.roof(DType::kFloat32, 1);
  EXPECT_GT(roof.flops_per_s, 0);
  EXPECT_GT(roof.bytes_per_s, 0);
  EXPECT_EQ(RoofCache(path_).find(DType::kFloat32, 1), roof);
  EXPECT_EQ(cache_.roof(DType::kFloat32, 1), roof);
}

TEST_F(RoofCacheTest, KeepsOneOfEachNumberOfThreads) {
  const Roof one = cache_.measure(DType::kFloat32, 1);
  const Roof two = cache_.measure(DType::kFloat32, 2);
  EXPECT_EQ(cache_.find(DType::kFloat32, 1), one);
  EXPECT_EQ(cache_.find(DType::kFloat32, 2), two);
  EXPECT_FALSE(cache_.find(DType::kBFloat16, 1));
}

TEST_F(RoofCacheTest, TheHigherRatesStay) {
  const std::string entry =
      R"({"precision": "float32", "threads": 1, "flops_per_s": 1e18, "bytes_per_s": 1, "rule_bytes_per_s": 3e18, "cache_bytes": 5})";
  cache_.measure(DType::kFloat32, 2);
  replace("\"roofs\": [", "\"roofs\": [" + entry + ",");
  EXPECT_EQ(cache_.find(DType::kFloat32, 1)->bytes_per_s, 1);
  const Roof again = cache_.measure(DType::kFloat32, 1);
  EXPECT_EQ(again.flops_per_s, 1e18);
  EXPECT_GT(again.bytes_per_s, 1);
  EXPECT_EQ(again.rule_bytes_per_s, 3e18);
  EXPECT_EQ(cache_.find(DType::kFloat32, 1), again);
}

TEST_F(RoofCacheTest, AFileOfAnotherProcessorCountsAsEmpty) {
  cache_.measure(DType::kFloat32, 1);
  replace("\"processor\": \"", "\"processor\": \"Another ");
  EXPECT_FALSE(cache_.find(DType::kFloat32, 1));
}

TEST_F(RoofCacheTest, ADamagedFileCountsAsEmptyAndIsReplaced) {
  cache_.measure(DType::kFloat32, 1);
  const std::string whole = text();
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[1, 2]"),
        std::string(R"({"roofs": 3})"), std::string("\xff\xfe{")}) {
    write(damaged);
    EXPECT_FALSE(cache_.find(DType::kFloat32, 1)) << damaged;
  }
  cache_.measure(DType::kFloat32, 1);
  EXPECT_TRUE(cache_.find(DType::kFloat32, 1));
}

TEST_F(RoofCacheTest, AnEntryWithoutARateIsMeasuredAgain) {
  cache_.measure(DType::kFloat32, 1);
  replace("\"bytes_per_s\"", "\"other\"");
  EXPECT_FALSE(cache_.find(DType::kFloat32, 1));
}

TEST_F(RoofCacheTest, AFolderThatCannotBeMadeKeepsNothing) {
  std::ofstream(folder_.path() + "/cache") << "a file";
  EXPECT_GT(cache_.measure(DType::kFloat32, 1).flops_per_s, 0);
  EXPECT_FALSE(cache_.find(DType::kFloat32, 1));
}

TEST_F(RoofCacheTest, WithoutAFileNothingIsKept) {
  const RoofCache none{""};
  EXPECT_GT(none.measure(DType::kFloat32, 1).flops_per_s, 0);
  EXPECT_FALSE(none.find(DType::kFloat32, 1));
}

}  // namespace
}  // namespace paceline
