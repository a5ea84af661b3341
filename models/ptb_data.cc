#include "models/ptb_data.h"

namespace paceline::models {

PtbData read_ptb(const std::string& folder, const PtbConfig& config, int worker, int workers) {
  const std::string begin = folder + "/ptb.";
  const Vocabulary words =
      Vocabulary::from_file(begin + "train.txt", std::size_t(config.vocabulary));
  const auto part = [&](const char* file) {
    return TextBatches(part_of(words.read(begin + file), worker, workers), config.batch,
                       config.unroll);
  };
  return {.train = part("train.txt"),
          .valid = part("valid.txt"),
          .test = TextBatches(words.read(begin + "test.txt"), 1, 1)};
}

}  // namespace paceline::models
