// The speed of the five reports' clusters, compared with what the hardware allows.
#pragma once

#include <functional>
#include <string>

#include "bench/recorder.h"

namespace paceline::bench {

/// The rows to measure.
struct ReportSelection {
  std::string only;    // a part of their names, "resnet" or "local steps"; empty: all
  bool quick = false;  // a few rows of each
};

/// Throws kUsage when there are no such rows.
void check(const ReportSelection& selection);

/// The case `reports`: runs every row, and compares its speed with the bound by its devices, its
/// links and the rules' rate of memory on this machine (bench/recent_hosts.h). Says first how long
/// all of them take. Rows with links of a limited rate need root; without, a note takes
/// their place. Calls `keep` after each row. Throws at the end when a row failed.
void measure_reports(Recorder& recorder, const ReportSelection& selection,
                     const std::function<void()>& keep);

}  // namespace paceline::bench
