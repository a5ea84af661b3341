// Predicted speeds beside measured ones.
#pragma once

#include <string>

#include "bench/recorder.h"

namespace paceline::bench {

struct PredictionSelection {
  std::string only;       // rows with this in their name; empty: all
  std::string csv;        // the file that rows are appended to
  double minutes = 60;    // no row begins later
  bool computed = false;  // on this machine's cores, instead of on simulated devices
};

/// The case `predictions`: runs configurations, each of which says before its first step what it
/// expects, and appends what it expected and what it made to the file. Rows of this version that
/// the file has are left out, so that a run goes on where the last one ended; those that no version
/// has measured come first. The roof is measured before each row, and after those that the cores
/// compute: where it moved, the row is set apart. A row waits, for two minutes at most, until
/// the cores are as far from each other as usual; a run during which they were moved is made again,
/// three times at most.
void measure_predictions(Recorder& recorder, const PredictionSelection& selection);

}  // namespace paceline::bench
