// Predicted speeds beside measured ones.
#pragma once

#include <string>

#include "bench/recorder.h"

namespace paceline::bench {

struct ForesightSelection {
  std::string only;     // a model; empty: all
  std::string csv;      // the file that rows are appended to
  double minutes = 60;  // no row begins later
};

/// The case `foresight`: runs configurations, each of which says before its first step what it
/// expects, and appends what it expected and what it made to the file. Rows of this version that
/// the file has are left out, so that a run goes on where the last one ended.
void measure_foresight(Recorder& recorder, const ForesightSelection& selection);

}  // namespace paceline::bench
