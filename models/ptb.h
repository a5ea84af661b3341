// The model ptb: an LSTM language model of words (Penn Treebank) in the sizes small, medium and
// large.
#pragma once

#include "models/model.h"

namespace paceline::models {

const Model& ptb_model();

}  // namespace paceline::models
