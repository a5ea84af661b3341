// The five reports of slow distributed training, as clusters that can be run again.
#pragma once

#include <span>
#include <string_view>

namespace paceline::bench {

/// One cluster of a report. Its devices are simulated, at the speed of the report's own.
struct ReportRow {
  std::string_view report;      // the model: "mlp"
  std::string_view name;        // "1 ps + 4 workers"
  double device_ms = 0;         // that a step takes on the device
  int ps = 0, workers = 1;      // no ps: one process
  bool quick = false;           // is in the short selection
  double gbps = 0;              // of each host's link; 0: all tasks are on one host
  std::string_view place = "";  // --lab-place; empty: each task has a host of its own
  std::string_view flags = "";  // more flags of the run, between blanks
  int towers = 1;               // devices of each worker, each of which makes a step
  bool straggler = false;       // the last worker is 3 times as slow; the others are counted
};

/// All rows, report by report.
std::span<const ReportRow> report_rows();

}  // namespace paceline::bench
