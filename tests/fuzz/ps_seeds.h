// Scripts for fuzz_ps that reach deep states of a ps. The project's own encoders make them.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/ps_script.h"

namespace paceline::testing {

struct PsSeed {
  std::string name;  // the name of its file in the corpus
  PsScript script;
  std::int64_t applied;        // steps, at its end
  std::set<MessageType> said;  // among what the ps says
  std::string warning = {};    // in what it warns of
};

std::vector<PsSeed> ps_seeds();

}  // namespace paceline::testing
