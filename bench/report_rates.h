// The speed of the five reports' clusters, compared with what the hardware allows.
#pragma once

#include <string>

#include "bench/recorder.h"

namespace paceline::bench {

/// The rows to measure.
struct ReportSelection {
  std::string only;    // a report's name; empty: all
  bool quick = false;  // a few rows of each
};

/// Throws kUsage when there is no such report.
void check(const ReportSelection& selection);

/// The case `reports`: runs every row, and compares the steps per second of all its workers with
/// the bound by its devices, its links and the roof of this machine, which is measured just before.
/// Rows with links of a limited rate need root; without, a note takes their place.
void measure_reports(Recorder& recorder, const ReportSelection& selection);

}  // namespace paceline::bench
