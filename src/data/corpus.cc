// Generated text. A sentence walks through the states of a small Markov chain. Every word belongs
// to one state, so the last word tells which words may follow. A topic, which lasts for many words,
// chooses among the rarer words of a state, so a longer memory helps, too.
//
// Words are divided among the states, and among the topics of a state, so that the frequencies in
// the text as a whole follow Zipf's law (in Mandelbrot's form, 1 / (rank + 2.7)).
#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>

#include "base/text_file.h"
#include "data/generated_files.h"
#include "data/random_words.h"
#include "paceline/data.h"
#include "paceline/error.h"
#include "paceline/zoo_data.h"

namespace paceline {
namespace {

constexpr int kTypes = 10000;
constexpr int kWords = kTypes - 1;  // without <eos>; word 0 is <unk>
constexpr std::int64_t kLeastWords = 20000;
constexpr std::int64_t kBytesOfAWord = 4;  // about, with its blank
constexpr int kStates = 24;
// A sentence ends only after a word of this state or of a later one.
constexpr int kFirstEndState = 20;
constexpr int kTopics = 10;
constexpr int kCommonWords = 150;  // these belong to no topic
constexpr double kEndSentence = 0.3;
constexpr double kNewTopic = 0.02;
constexpr double kOwnTopic = 0.8;
constexpr std::array<double, 4> kSuccessorShares = {0.5, 0.25, 0.15, 0.1};
// The words in the three files of Penn Treebank.
constexpr std::int64_t kTrainShare = 929589, kValidShare = 73760, kTestShare = 82430;
constexpr std::int64_t kAllShares = kTrainShare + kValidShare + kTestShare;

/// The words of one state and topic, drawn by their frequencies.
struct WordList {
  std::vector<int> words;
  std::vector<double> sums;  // of frequencies, ascending
  double total() const { return sums.empty() ? 0 : sums.back(); }
  void add(int word, double frequency) {
    words.push_back(word);
    sums.push_back(total() + frequency);
  }
  int draw(RandomWords& random) const {
    const auto at = std::upper_bound(sums.begin(), sums.end(), random.uniform() * total());
    return words[std::min(std::size_t(at - sums.begin()), words.size() - 1)];
  }
};

struct Grammar {
  std::array<std::array<int, kSuccessorShares.size()>, kStates> successors;
  struct State {
    WordList common;
    std::array<WordList, kTopics> by_topic;
    double common_share = 0;
  };
  std::array<State, kStates> states;
  std::array<int, kWords> state_of;
};

using Shares = std::array<double, kStates>;

// Returns how much of the time the chain spends in each state, by repeated multiplication.
Shares long_run(const Grammar& grammar) {
  Shares shares{};
  shares[0] = 1;
  for (int round = 0; round < 500; ++round) {
    Shares next{};
    for (std::size_t s = 0; s < kStates; ++s) {
      const double ends = s >= kFirstEndState ? kEndSentence : 0;
      next[0] += shares[s] * ends;
      for (std::size_t k = 0; k < kSuccessorShares.size(); ++k) {
        next[std::size_t(grammar.successors[s][k])] += shares[s] * (1 - ends) * kSuccessorShares[k];
      }
    }
    shares = next;
  }
  return shares;
}

void choose_successors(Grammar& grammar, RandomWords& random) {
  for (int s = 0; s < kStates; ++s) {
    auto& successors = grammar.successors[std::size_t(s)];
    successors[0] = (s + 1) % kStates;  // so that every state is reached
    for (std::size_t k = 1; k < successors.size(); ++k) successors[k] = random.below(kStates);
  }
}

// Goes through the words from the most frequent on, and gives each to the state that lacks most of
// its share.
void share_out_words(Grammar& grammar) {
  Shares lacking = long_run(grammar);
  double all = 0;
  for (int word = 0; word < kWords; ++word) all += 1 / (word + 2.7);
  for (double& share : lacking) share *= all;
  for (int word = 0; word < kWords; ++word) {
    const double frequency = 1 / (word + 2.7);
    const auto most = std::max_element(lacking.begin(), lacking.end());
    *most -= frequency;
    const auto s = std::size_t(most - lacking.begin());
    grammar.state_of[std::size_t(word)] = int(s);
    Grammar::State& state = grammar.states[s];
    const auto least = std::min_element(
        state.by_topic.begin(), state.by_topic.end(),
        [](const WordList& a, const WordList& b) { return a.total() < b.total(); });
    (word < kCommonWords ? state.common : *least).add(word, frequency);
  }
  for (Grammar::State& state : grammar.states) {
    double rare = 0;
    for (const WordList& list : state.by_topic) rare += list.total();
    state.common_share = state.common.total() / (state.common.total() + rare);
  }
}

constexpr int kEos = -1;

class Writer {
 public:
  Writer(const Grammar& grammar, RandomWords& random) : grammar_(grammar), random_(random) {}

  /// Returns the next `count` words, of which the last one is <eos>.
  std::vector<int> words(std::int64_t count) {
    std::vector<int> words;
    words.reserve(std::size_t(count));
    while (std::int64_t(words.size()) + 1 < count) words.push_back(next());
    words.push_back(kEos);
    state_ = 0;
    return words;
  }

 private:
  int next() {
    if (ended_) {
      ended_ = false;
      state_ = 0;
      return kEos;
    }
    if (random_.uniform() < kNewTopic) topic_ = random_.below(kTopics);
    const int word = draw();
    ended_ = state_ >= kFirstEndState && random_.uniform() < kEndSentence;
    move();
    return word;
  }

  int draw() {
    const Grammar::State& state = grammar_.states[std::size_t(state_)];
    if (random_.uniform() < state.common_share) return state.common.draw(random_);
    const int topic = random_.uniform() < kOwnTopic ? topic_ : random_.below(kTopics);
    return state.by_topic[std::size_t(topic)].draw(random_);
  }

  void move() {
    double left = random_.uniform();
    std::size_t k = 0;
    while (k + 1 < kSuccessorShares.size() && left >= kSuccessorShares[k]) {
      left -= kSuccessorShares[k++];
    }
    state_ = grammar_.successors[std::size_t(state_)][k];
  }

  const Grammar& grammar_;
  RandomWords& random_;
  int state_ = 0, topic_ = 0;
  bool ended_ = false;
};

// Returns the indices below n in an order in which neighbours are far apart.
std::vector<std::size_t> scattered(std::size_t n) {
  auto stride = std::size_t(double(n) * 0.618);
  while (std::gcd(stride, n) != 1) ++stride;
  std::vector<std::size_t> order(n);
  for (std::size_t i = 1; i < n; ++i) order[i] = (order[i - 1] + stride) % n;
  return order;
}

// Gives rare words that did not occur the places of words that occurred more than once.
class Completion {
 public:
  Completion(std::vector<int>& words, const Grammar& grammar) : words_(words), grammar_(grammar) {
    for (const int word : words) {
      if (word != kEos) ++counts_[std::size_t(word)];
    }
    for (int word = 0; word < kWords; ++word) {
      if (counts_[std::size_t(word)] == 0) missing_[state_of(word)].push_back(word);
    }
  }

  // Places the words all over the text. Each takes the place of a word of its own state, as long as
  // there are such places, so that the grammar holds.
  void run() {
    const std::vector<std::size_t> order = scattered(words_.size());
    for (const std::size_t at : order) {
      if (is_spare(words_[at])) replace(words_[at], missing_[state_of(words_[at])]);
    }
    for (const std::size_t at : order) {
      const auto wanted = std::ranges::find_if(missing_, [](const auto& m) { return !m.empty(); });
      if (wanted == missing_.end()) return;
      if (is_spare(words_[at])) replace(words_[at], *wanted);
    }
  }

 private:
  std::size_t state_of(int word) const { return std::size_t(grammar_.state_of[std::size_t(word)]); }
  bool is_spare(int word) const { return word != kEos && counts_[std::size_t(word)] > 1; }

  void replace(int& place, std::vector<int>& by) {
    if (by.empty()) return;
    --counts_[std::size_t(place)];
    place = by.back();
    ++counts_[std::size_t(place)];
    by.pop_back();
  }

  std::vector<int>& words_;
  const Grammar& grammar_;
  std::vector<int> counts_ = std::vector<int>(kWords, 0);
  std::array<std::vector<int>, kStates> missing_;
};

// Spells words so that they can be pronounced and all differ. The first hundred have one syllable.
std::string spelling(int word) {
  constexpr std::string_view kConsonants = "bcdfghjklmnpqrstvwxz", kVowels = "aeiou";
  if (word == 0) return "<unk>";
  const auto syllable = [&](int i) {
    return std::string{kConsonants[std::size_t(i / 5)], kVowels[std::size_t(i % 5)]};
  };
  return word < 100 ? syllable(word) : syllable(word / 100) + syllable(word % 100);
}

// Writes the words as in Penn Treebank's files: a blank before each word and before the newline.
void write_text(const std::filesystem::path& path, const std::vector<int>& words) {
  std::string text;
  for (const int word : words) {
    text += ' ';
    if (word == kEos) {
      text += '\n';
    } else {
      text += spelling(word);
    }
  }
  write_text_file("the text", path.string(), text);
}

constexpr const char* kTexts[] = {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"};

}  // namespace

void generate_corpus(const std::string& folder, std::int64_t words, std::uint64_t seed) {
  if (words < kLeastWords) {
    throw Error(ErrorCode::kInvalidArgument,
                "a corpus of " + std::to_string(words) + " words is too small for " +
                    std::to_string(kTypes) + " different words: the least is " +
                    std::to_string(kLeastWords));
  }
  make_folder_for(folder, kTexts, words, kBytesOfAWord);
  RandomWords random(random_key(seed, "corpus"));
  Grammar grammar{};
  choose_successors(grammar, random);
  share_out_words(grammar);
  Writer writer(grammar, random);

  const std::int64_t valid = words * kValidShare / kAllShares;
  const std::int64_t test = words * kTestShare / kAllShares;
  std::vector<int> train = writer.words(words - valid - test);
  Completion(train, grammar).run();
  const std::filesystem::path out(folder);
  write_text(out / kTexts[0], train);
  write_text(out / kTexts[1], writer.words(valid));
  write_text(out / kTexts[2], writer.words(test));
}

}  // namespace paceline
