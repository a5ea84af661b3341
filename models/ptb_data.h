// The three texts of ptb, as batches for one worker and its towers.
#pragma once

#include <string>
#include <vector>

#include "models/ptb_config.h"
#include "paceline/data.h"

namespace paceline::models {

struct PtbData {
  /// The batches of each tower. All of them together have the rows of one device with a batch as
  /// large as theirs.
  std::vector<TextBatches> train;       // of this worker's part of the text, or of all of it
  TextBatches valid;                    // of this worker's part
  TextBatches test;                     // all of it, one row, one step
  std::vector<std::string> words = {};  // of the vocabulary, by id
  /// Lines for the user: how many tokens of the texts are read as <unk>.
  std::vector<std::string> notes = {};
};

/// Reads ptb.train.txt, ptb.valid.txt and ptb.test.txt of `folder`; the vocabulary is the training
/// text's. If the job shares out the training text, each worker has all of it. Throws kNotFound,
/// kDataLoss, and kInvalidArgument when a part gives no batch, each naming the file.
PtbData read_ptb(const std::string& folder, const PtbConfig& config, int worker, int workers,
                 int towers = 1, bool shared = false);

}  // namespace paceline::models
