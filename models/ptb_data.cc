#include "models/ptb_data.h"

#include <fmt/format.h>

#include "paceline/error.h"

namespace paceline::models {
namespace {

std::vector<std::int32_t> read_noting(const Vocabulary& words, const std::string& path,
                                      std::vector<std::string>& notes) {
  std::int64_t unknown = 0;
  std::vector<std::int32_t> stream = words.read(path, &unknown);
  if (unknown > 0) {
    notes.push_back(fmt::format(
        "{}: {} of {} tokens are not among the {} words of the vocabulary and are read as <unk>",
        path, unknown, stream.size(), words.size()));
  }
  return stream;
}

TextBatches batches_of(const std::string& path, std::vector<std::int32_t> stream,
                       std::int64_t batch, std::int64_t unroll) {
  try {
    return {std::move(stream), batch, unroll};
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}; take a longer text, or less of --batch, --set "
                                          "unroll=N, --towers or --workers",
                                          path, error.what()));
  }
}

// Cuts the text into rows for all towers together, and returns the part with the rows of this
// tower.
std::vector<std::int32_t> rows_of_tower(const std::vector<std::int32_t>& text, std::int64_t rows,
                                        int tower, int towers) {
  if (towers == 1) return text;
  const std::int64_t size = rows * (std::int64_t(text.size()) / (rows * towers));
  const auto first = text.begin() + tower * size;
  return {first, first + size};
}

}  // namespace

PtbData read_ptb(const std::string& folder, const PtbConfig& config, int worker, int workers,
                 int towers, bool shared) {
  const std::string begin = folder + "/ptb.";
  const Vocabulary words =
      Vocabulary::from_file(begin + "train.txt", std::size_t(config.vocabulary));
  std::vector<std::string> notes;
  std::string path = begin + "train.txt";
  std::vector<std::int32_t> text = read_noting(words, path, notes);
  if (!shared) text = part_of(text, worker, workers);
  std::vector<TextBatches> train;
  train.reserve(std::size_t(towers));
  for (int tower = 0; tower < towers; ++tower) {
    train.push_back(batches_of(path, rows_of_tower(text, config.batch, tower, towers), config.batch,
                               config.unroll));
  }
  path = begin + "valid.txt";
  TextBatches valid = batches_of(path, part_of(read_noting(words, path, notes), worker, workers),
                                 config.batch, config.unroll);
  path = begin + "test.txt";
  TextBatches test = batches_of(path, read_noting(words, path, notes), 1, 1);
  std::vector<std::string> by_id;
  for (std::size_t id = 0; id < words.size(); ++id) by_id.push_back(words.word(std::int32_t(id)));
  return {std::move(train), std::move(valid), std::move(test), std::move(by_id), std::move(notes)};
}

}  // namespace paceline::models
