// Data to train on: text for language models, as batches of word ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace paceline {

/// The words of a text, with ids in the order of (−count, word). A newline counts as "<eos>".
class Vocabulary {
 public:
  /// The `most` most frequent words of the file. Throws kNotFound, and kDataLoss when the file is
  /// empty or no text.
  static Vocabulary from_file(const std::string& path, std::size_t most = 10000);

  /// The number of words.
  std::size_t size() const { return words_.size(); }
  /// The word of an id, which must be in [0, size()).
  const std::string& word(std::int32_t id) const { return words_[std::size_t(id)]; }
  /// The id of the word, or of "<unk>" when it is unknown. Throws kNotFound, naming the word, when
  /// there is no "<unk>" either.
  std::int32_t id(std::string_view word) const;
  /// The file as one stream of ids, "<eos>" at each newline. A token that is not in the vocabulary
  /// is read as "<unk>"; `unknown`, where given, becomes the number of those. Throws kNotFound,
  /// kDataLoss (not text), and kNotFound naming file, line and token when there is no "<unk>".
  std::vector<std::int32_t> read(const std::string& path, std::int64_t* unknown = nullptr) const;

 private:
  std::vector<std::string> words_;
  struct WordHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>()(word);
    }
  };
  std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>> ids_;
};

/// A stream laid out as `batch` rows. Batch i consists of the columns [i·steps, (i+1)·steps), and
/// its targets are the same columns shifted by one (Zaremba et al., arXiv 1409.2329).
class TextBatches {
 public:
  /// Throws kInvalidArgument when the stream gives less than one batch.
  TextBatches(std::vector<std::int32_t> stream, std::int64_t batch, std::int64_t steps);
  /// The number of batches.
  std::int64_t size() const { return count_; }
  /// Fills inputs and targets with batch `index`, each (steps, batch) row-major: time first. Throws
  /// kInvalidArgument when there is no such batch, or one of the two has another size.
  void fill(std::int64_t index, std::span<std::int32_t> inputs,
            std::span<std::int32_t> targets) const;

 private:
  void check(std::int64_t index, std::size_t size) const;

  std::vector<std::int32_t> stream_;
  std::int64_t batch_, steps_, row_, count_;
};

/// Part `index` of `parts` equal contiguous parts of a stream.
std::vector<std::int32_t> part_of(const std::vector<std::int32_t>& stream, int index, int parts);

/// Writes ptb.train.txt, ptb.valid.txt and ptb.test.txt, split as Penn Treebank is, into the
/// folder: `words` words in all of exactly 10,000 types (with <eos> and <unk>, each in train), Zipf
/// frequencies, a hidden-state grammar that a model can learn; the same bytes for the same seed.
/// Throws kInvalidArgument when `words` is too small, naming the least.
void generate_corpus(const std::string& folder, std::int64_t words, std::uint64_t seed);

}  // namespace paceline
