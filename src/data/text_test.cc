#include "paceline/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string write_file(const std::string& name, const std::string& text) {
  static const TemporaryFolder folder;
  std::string path = folder.path(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Vocabulary, OrdersTypesByCountThenWord) {
  const auto path = write_file("order.txt", " b a c \n a c \n c <unk> \n");
  const Vocabulary words = Vocabulary::from_file(path);
  ASSERT_EQ(words.size(), 5u);
  // Order by frequency: c and <eos> occur three times ("<" sorts before "c"), a twice, and the
  // others once.
  EXPECT_EQ(words.word(0), "<eos>");
  EXPECT_EQ(words.word(1), "c");
  EXPECT_EQ(words.word(2), "a");
  EXPECT_EQ(words.word(3), "<unk>");
  EXPECT_EQ(words.word(4), "b");
}

TEST(Vocabulary, ReadsNewlinesAsEosAndUnknownWordsAsUnk) {
  const auto train = write_file("train.txt", "b b b a a <unk>\nb\n");
  const auto other = write_file("other.txt", "a new b\n\nb");
  const Vocabulary words = Vocabulary::from_file(train);
  const auto id = [&](const char* word) { return words.id(word); };
  EXPECT_THAT(words.read(other),
              ElementsAre(id("a"), id("<unk>"), id("b"), id("<eos>"), id("<eos>"), id("b")));
}

TEST(Vocabulary, ReadsATextWithAByteOrderMarkAsWithoutIt) {
  const auto plain = write_file("plain.txt", "the cat the\n<unk>\n");
  const auto marked = write_file("marked.txt", "\xEF\xBB\xBFthe cat the\n<unk>\n");
  const Vocabulary words = Vocabulary::from_file(marked);
  EXPECT_EQ(words.size(), Vocabulary::from_file(plain).size());
  EXPECT_EQ(words.read(marked), words.read(plain));
}

TEST(Vocabulary, NamesTheLineOfTheFileThoughEosStandsInIt) {
  const Vocabulary words = Vocabulary::from_file(write_file("known.txt", "a <eos> a\n"));
  const auto path = write_file("lines.txt", "a <eos> <eos> a\na <eos> b\n");
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { words.read(path); }),
              HasSubstr("lines.txt:2: 'b' is not among"));
}

TEST(Vocabulary, KeepsTheMostFrequentOnly) {
  const Vocabulary words = Vocabulary::from_file(write_file("most.txt", "a a a b b c\n"), 2);
  EXPECT_EQ(words.size(), 2u);
  EXPECT_THROW(words.id("c"), Error);  // there is no <unk>
}

TEST(Vocabulary, NamesWhatIsWrong) {
  try {
    Vocabulary::from_file("/nowhere/train.txt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/train.txt"));
  }
  EXPECT_THROW(Vocabulary::from_file(write_file("empty.txt", "")), Error);
  EXPECT_THROW(Vocabulary::from_file(write_file("zero.txt", std::string("a\0b", 3))), Error);
}

TEST(Vocabulary, CountsWhatItReadsAsUnk) {
  const Vocabulary words = Vocabulary::from_file(write_file("unk.txt", "a a <unk>\n"));
  std::int64_t unknown = -1;
  words.read(write_file("two.txt", "a x <unk>\ny a\n"), &unknown);
  EXPECT_EQ(unknown, 2);
  words.read(write_file("none.txt", "a\n"), &unknown);
  EXPECT_EQ(unknown, 0);
}

TEST(Vocabulary, NamesTheLineOfAWordThatItDoesNotHave) {
  const Vocabulary words = Vocabulary::from_file(write_file("no_unk.txt", "a b\n"));
  try {
    words.read(write_file("third.txt", "a\nb\nb x\n"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("third.txt:3: 'x' is not among the 3 words"));
  }
}

TEST(TextBatches, LaysTheStreamOutAsRowsTimeFirst) {
  // Two rows of five words, 0 1 2 3 4 and 5 6 7 8 9; the last word is dropped.
  const TextBatches batches({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 2, 2);
  ASSERT_EQ(batches.size(), 2);
  std::vector<std::int32_t> inputs(4), targets(4);
  batches.fill(1, inputs, targets);
  EXPECT_THAT(inputs, ElementsAre(2, 7, 3, 8));
  EXPECT_THAT(targets, ElementsAre(3, 8, 4, 9));
}

TEST(TextBatches, RefusesMemoryOfAnotherSizeAndBatchesThatAreNotThere) {
  const TextBatches batches({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 2, 2);
  std::vector<std::int32_t> fits(4), small(3);
  EXPECT_THROW(batches.fill(0, small, fits), Error);
  EXPECT_THROW(batches.fill(0, fits, small), Error);
  EXPECT_THROW(batches.fill(2, fits, fits), Error);
  EXPECT_THROW(batches.fill(-1, fits, fits), Error);
}

TEST(TextBatches, RefusesLessThanOneBatch) {
  EXPECT_NO_THROW(TextBatches({1, 2, 3, 1, 2, 3}, 2, 2));
  EXPECT_THROW(TextBatches({1, 2, 3, 1, 2}, 2, 2), Error);
  EXPECT_THROW(TextBatches({}, 20, 20), Error);
}

TEST(Vocabulary, ReadsLinesAndCountsTheUnknownWordsOfEach) {
  const Vocabulary words = Vocabulary::of({"a", "b", "<unk>", "<eos>"});
  EXPECT_EQ(words.size(), 4u);
  const auto lines = words.read_lines(write_file("lines.txt", "a b\n\n c  <eos> a\r\nb"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0].ids, ElementsAre(0, 1));
  EXPECT_EQ(lines[0].unknown, 0);
  EXPECT_THAT(lines[1].ids, ElementsAre());
  EXPECT_THAT(lines[2].ids, ElementsAre(2, 3, 0));
  EXPECT_EQ(lines[2].unknown, 1);
  EXPECT_THAT(lines[3].ids, ElementsAre(1));
  EXPECT_THAT(error_of(ErrorCode::kNotFound,
                       [] { Vocabulary::of({"a"}).read_lines(write_file("c.txt", "a\nc\n")); }),
              HasSubstr("c.txt:2: 'c' is not among the 1 words"));
}

TEST(PartOf, GivesEqualContiguousParts) {
  const std::vector<std::int32_t> stream = {0, 1, 2, 3, 4, 5, 6};
  EXPECT_THAT(part_of(stream, 0, 3), ElementsAre(0, 1));
  EXPECT_THAT(part_of(stream, 2, 3), ElementsAre(4, 5));
  EXPECT_EQ(part_of(stream, 0, 1), stream);
  EXPECT_THROW(part_of(stream, 3, 3), Error);
}

TEST(PennTreebank, HasTheReportedSizes) {
  const char* data = std::getenv("PACELINE_DATA");
  if (data == nullptr) GTEST_SKIP() << "PACELINE_DATA is not set";
  const std::string folder = std::string(data) + "/ptb/";
  const Vocabulary words = Vocabulary::from_file(folder + "ptb.train.txt");
  EXPECT_EQ(words.size(), 10000u);
  EXPECT_EQ(words.word(0), "the");
  const auto train = words.read(folder + "ptb.train.txt");
  EXPECT_EQ(train.size(), 929589u);
  EXPECT_EQ(words.read(folder + "ptb.valid.txt").size(), 73760u);
  EXPECT_EQ(words.read(folder + "ptb.test.txt").size(), 82430u);
  EXPECT_EQ(TextBatches(train, 20, 20).size(), 2323);
}

}  // namespace
}  // namespace paceline
