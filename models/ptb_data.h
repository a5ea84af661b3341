// The three texts of ptb, as batches for one worker and its towers.
#pragma once

#include <string>
#include <vector>

#include "models/ptb_config.h"
#include "paceline/data.h"

namespace paceline::models {

struct PtbData {
  /// The batches of each tower, from this worker's part of the text, or from the whole text if the
  /// job shares it out. Together, the towers read the rows that one device would read with a batch
  /// as large as all their batches.
  std::vector<TextBatches> train;
  TextBatches valid;                    // batches of this worker's part of the text
  TextBatches test;                     // the whole text in batches of one word
  std::vector<std::string> words = {};  // the words of the vocabulary, by id
  /// Lines for the user: how many tokens of the texts are read as <unk>.
  std::vector<std::string> notes = {};
};

/// Reads ptb.train.txt, ptb.valid.txt and ptb.test.txt in `folder`. The vocabulary is that of the
/// training text. If the job shares out the training text, each worker has all of it. Throws
/// kNotFound, kDataLoss, and kInvalidArgument when a part gives no batch, each naming the file.
PtbData read_ptb(const std::string& folder, const PtbConfig& config, int worker, int workers,
                 int towers = 1, bool shared = false);

}  // namespace paceline::models
