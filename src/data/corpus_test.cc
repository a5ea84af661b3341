#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "base/temporary_folder.h"
#include "paceline/data.h"
#include "paceline/error.h"
#include "paceline/zoo_data.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

class Corpus : public ::testing::Test {
 protected:
  std::string folder(const std::string& name) const { return folder_.path(name); }
  static std::string bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  const TemporaryFolder folder_;
};

TEST_F(Corpus, HasExactlyTheWordsAndTypesAskedFor) {
  for (const std::int64_t count : {20000, 200000}) {
    const std::string out = folder(std::to_string(count));
    generate_corpus(out, count, 1);
    const Vocabulary words = Vocabulary::from_file(out + "/ptb.train.txt", 1u << 20);
    EXPECT_EQ(words.size(), 10000u);
    EXPECT_NO_THROW(words.id("<unk>"));
    std::int64_t all = 0;
    for (const char* file : {"/ptb.train.txt", "/ptb.valid.txt", "/ptb.test.txt"}) {
      all += std::int64_t(words.read(out + file).size());
    }
    EXPECT_EQ(all, count);
  }
}

TEST_F(Corpus, HoldsNoWordOutsideTrain) {
  const std::string out = folder("all");
  generate_corpus(out, 50000, 3);
  const Vocabulary words = Vocabulary::from_file(out + "/ptb.train.txt", 1u << 20);
  for (const char* file : {"/ptb.valid.txt", "/ptb.test.txt"}) {
    std::ifstream text(out + file);
    std::string word;
    while (text >> word) {
      ASSERT_EQ(words.word(words.id(word)), word);
    }
  }
}

TEST_F(Corpus, IsTheSameForASeedAndAnotherForAnother) {
  generate_corpus(folder("a"), 30000, 7);
  generate_corpus(folder("b"), 30000, 7);
  generate_corpus(folder("c"), 30000, 8);
  for (const char* file : {"/ptb.train.txt", "/ptb.valid.txt", "/ptb.test.txt"}) {
    EXPECT_EQ(bytes(folder("a") + file), bytes(folder("b") + file));
    EXPECT_NE(bytes(folder("a") + file), bytes(folder("c") + file));
  }
}

TEST_F(Corpus, WorksForManySeeds) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string out = folder("seed" + std::to_string(seed));
    generate_corpus(out, 20000, seed);
    EXPECT_EQ(Vocabulary::from_file(out + "/ptb.train.txt", 1u << 20).size(), 10000u);
  }
}

TEST_F(Corpus, RefusesTooFewWordsNamingTheLeast) {
  try {
    generate_corpus(folder("few"), 19999, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("20000"));
  }
}

TEST_F(Corpus, IsRefusedWhereTheDiskHasNoRoomForIt) {
  try {
    generate_corpus(folder("large"), std::numeric_limits<std::int64_t>::max(), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("has room for"));
  }
}

TEST_F(Corpus, HasItsRareWordsAllOverTheText) {
  const std::string out = folder("halves");
  generate_corpus(out, 20000, 1);
  const auto stream = Vocabulary::from_file(out + "/ptb.train.txt").read(out + "/ptb.train.txt");
  const auto rare = [&](int half) {
    const auto part = part_of(stream, half, 2);
    return double(std::ranges::count_if(part, [](std::int32_t id) { return id > 2000; }));
  };
  EXPECT_NEAR(rare(0) / rare(1), 1, 0.1);
}

// The bits per word of the training text, in a model of the text's own counts.
struct Entropies {
  double of_word = 0;
  double of_word_after_word = 0;
};

Entropies entropies(const std::vector<std::int32_t>& stream) {
  std::map<std::int32_t, double> words;
  std::map<std::pair<std::int32_t, std::int32_t>, double> pairs;
  const auto n = double(stream.size() - 1);
  for (std::size_t i = 0; i + 1 < stream.size(); ++i) {
    ++words[stream[i]];
    ++pairs[{stream[i], stream[i + 1]}];
  }
  Entropies entropies;
  for (const auto& [word, count] : words) entropies.of_word -= count / n * std::log2(count / n);
  for (const auto& [pair, count] : pairs) {
    entropies.of_word_after_word -= count / n * std::log2(count / words[pair.first]);
  }
  return entropies;
}

TEST_F(Corpus, FollowsZipfAndHasAGrammar) {
  const std::string out = folder("grammar");
  generate_corpus(out, 400000, 1);
  const Vocabulary words = Vocabulary::from_file(out + "/ptb.train.txt");
  const auto stream = words.read(out + "/ptb.train.txt");
  std::vector<double> counts(words.size(), 0);
  for (const std::int32_t id : stream) ++counts[std::size_t(id)];
  // Zipf's law: ten times the rank means a tenth of the count.
  EXPECT_NEAR(counts[100] / counts[1000], 10, 2.5);
  // About a twentieth of Penn Treebank's words are <eos>, and about as many <unk>.
  EXPECT_NEAR(counts[std::size_t(words.id("<eos>"))] / double(stream.size()), 0.05, 0.03);
  EXPECT_GT(counts[std::size_t(words.id("<unk>"))] / double(stream.size()), 0.01);
  // The last word carries about half a bit about the next one, among frequent words.
  std::vector<std::int32_t> frequent;
  frequent.reserve(stream.size());
  for (const std::int32_t id : stream) frequent.push_back(std::min(id, 60));
  const Entropies bits = entropies(frequent);
  EXPECT_GT(bits.of_word - bits.of_word_after_word, 0.4);
}

}  // namespace
}  // namespace paceline
