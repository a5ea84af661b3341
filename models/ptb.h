// ptb: a word language model (Penn Treebank), small, medium, large.
#pragma once

#include "models/model.h"

namespace paceline::models {

const Model& ptb_model();

}  // namespace paceline::models
