// Inference of ptb: the perplexity of each line of a text.
#pragma once

#include "models/ptb_config.h"
#include "paceline/program.h"

namespace paceline::models {

/// Gives a row for each line of the text: its number from 1, its perplexity over its words and its
/// end, and how many words it has and how many of them are read as <unk>. The words' ids are those
/// that the checkpoint tells. Throws kFailedPrecondition when it tells none, kUsage when the text
/// cannot be read.
void infer_lines(const InferenceRequest& request, const PtbConfig& config);

}  // namespace paceline::models
