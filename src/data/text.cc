#include "paceline/data.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::string_view kEndOfSentence = "<eos>";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::error_code ignored;
  // A folder opens, but has no size.
  const bool folder = std::filesystem::is_directory(path, ignored);
  if (folder) errno = EISDIR;
  if (!file || folder) {
    throw Error(ErrorCode::kNotFound, "cannot read text " + path + ": " + std::strerror(errno));
  }
  const std::streamoff bytes = file.tellg();
  std::string text(bytes > 0 ? std::size_t(bytes) : 0, '\0');
  file.seekg(0);
  if (!file.read(text.data(), std::streamsize(text.size()))) {
    throw Error(ErrorCode::kDataLoss, "cannot read all of " + path);
  }
  if (text.find('\0') != std::string::npos) {
    throw Error(ErrorCode::kDataLoss, path + " is not text: it holds a zero byte");
  }
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

// Calls `call` with each word and the number of its line in the file.
template <typename F>
void for_each_word(std::string_view text, F&& call) {
  constexpr std::string_view kBlank = " \t\r\n";
  std::size_t begin = 0;
  std::int64_t line = 1;
  while (begin < text.size()) {
    const char c = text[begin];
    if (kBlank.find(c) != std::string_view::npos) {
      if (c == '\n') call(kEndOfSentence, line++);
      ++begin;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
    call(text.substr(begin, end - begin), line);
    begin = end;
  }
}

using Counted = std::pair<std::string_view, std::int64_t>;

std::vector<Counted> by_count_then_word(std::string_view text) {
  std::unordered_map<std::string_view, std::int64_t> counts;
  for_each_word(text, [&](std::string_view word, std::int64_t /*line*/) { ++counts[word]; });
  std::vector<Counted> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const Counted& a, const Counted& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return sorted;
}

}  // namespace

Vocabulary Vocabulary::from_file(const std::string& path, std::size_t most) {
  const std::string text = read_text(path);
  std::vector<Counted> sorted = by_count_then_word(text);
  if (sorted.empty()) throw Error(ErrorCode::kDataLoss, path + " holds no words");
  sorted.resize(std::min(sorted.size(), most));
  std::vector<std::string> words;
  for (const Counted& counted : sorted) words.emplace_back(counted.first);
  return of(std::move(words));
}

Vocabulary Vocabulary::of(std::vector<std::string> words) {
  Vocabulary vocabulary;
  vocabulary.words_ = std::move(words);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    vocabulary.ids_.emplace(vocabulary.words_[id], std::int32_t(id));
  }
  return vocabulary;
}

std::int32_t Vocabulary::id(std::string_view word) const {
  auto found = ids_.find(word);
  if (found == ids_.end()) found = ids_.find("<unk>");
  if (found == ids_.end()) {
    throw Error(ErrorCode::kNotFound,
                "word '" + std::string(word) + "' is not in the vocabulary, which has no <unk>");
  }
  return found->second;
}

std::vector<std::int32_t> Vocabulary::read(const std::string& path, std::int64_t* unknown) const {
  const std::string text = read_text(path);
  std::vector<std::int32_t> stream;
  std::int64_t unknown_tokens = 0;
  for_each_word(text, [&](std::string_view word, std::int64_t line) {
    stream.push_back(id_in(word, path, line, unknown_tokens));
  });
  if (unknown != nullptr) *unknown = unknown_tokens;
  return stream;
}

std::vector<TextLine> Vocabulary::read_lines(const std::string& path) const {
  const std::string text = read_text(path);
  std::vector<TextLine> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    TextLine& line = lines.emplace_back();
    for_each_word(std::string_view(text).substr(begin, end - begin),
                  [&](std::string_view word, std::int64_t /*line*/) {
                    line.ids.push_back(id_in(word, path, std::int64_t(lines.size()), line.unknown));
                  });
    begin = end + 1;
  }
  return lines;
}

std::int32_t Vocabulary::id_in(std::string_view word, const std::string& path, std::int64_t line,
                               std::int64_t& unknown) const {
  if (const auto known = ids_.find(word); known != ids_.end()) return known->second;
  const auto unk = ids_.find("<unk>");
  if (unk == ids_.end()) {
    throw Error(ErrorCode::kNotFound, path + ":" + std::to_string(line) + ": '" +
                                          std::string(word) + "' is not among the " +
                                          std::to_string(size()) +
                                          " words of the vocabulary, and neither is <unk>, "
                                          "which stands for words that are not");
  }
  ++unknown;
  return unk->second;
}

TextBatches::TextBatches(std::vector<std::int32_t> stream, std::int64_t batch, std::int64_t steps)
    : stream_(std::move(stream)), batch_(batch), steps_(steps), row_(0), count_(0) {
  if (batch > 0) row_ = std::int64_t(stream_.size()) / batch;
  if (steps > 0) count_ = (row_ - 1) / steps;
  if (count_ < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                "a text of " + std::to_string(stream_.size()) + " words gives no batch of " +
                    std::to_string(batch) + " rows of " + std::to_string(steps) +
                    " words and their targets");
  }
}

void TextBatches::check(std::int64_t index, std::size_t size) const {
  if (index < 0 || index >= count_) {
    throw Error(ErrorCode::kInvalidArgument, "[text] there is no batch " + std::to_string(index) +
                                                 ": there are " + std::to_string(count_));
  }
  if (size == std::size_t(batch_ * steps_)) return;
  throw Error(ErrorCode::kInvalidArgument,
              "[text] " + std::to_string(size) + " elements for a batch of (" +
                  std::to_string(steps_) + "," + std::to_string(batch_) + ") words");
}

void TextBatches::fill(std::int64_t index, std::span<std::int32_t> inputs,
                       std::span<std::int32_t> targets) const {
  check(index, inputs.size());
  check(index, targets.size());
  for (std::int64_t row = 0; row < batch_; ++row) {
    const std::int32_t* words = stream_.data() + row * row_ + index * steps_;
    for (std::int64_t t = 0; t < steps_; ++t) {
      inputs[std::size_t(t * batch_ + row)] = words[t];
      targets[std::size_t(t * batch_ + row)] = words[t + 1];
    }
  }
}

std::vector<std::int32_t> part_of(const std::vector<std::int32_t>& stream, int index, int parts) {
  if (parts < 1 || index < 0 || index >= parts) {
    throw Error(ErrorCode::kInvalidArgument, "no part " + std::to_string(index) + " of " +
                                                 std::to_string(parts) + " parts of a text");
  }
  const auto size = std::ptrdiff_t(stream.size()) / parts;
  return {stream.begin() + index * size, stream.begin() + (index + 1) * size};
}

}  // namespace paceline
