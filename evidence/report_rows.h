// The five reports of slow distributed training, as clusters that can be rerun.
#pragma once

#include <string>
#include <vector>

namespace paceline::bench {

/// One cluster of a report. Its devices are simulated, at the speed of the report's devices.
struct ReportRow {
  std::string report;    // the model: "mlp"
  std::string name;      // "1 ps + 4 workers"
  double device_ms = 0;  // time of a step on the device
  int ps = 0;
  int workers = 1;            // if there is no ps, these are one process or an all-reduce
  bool quick = false;         // part of the short selection
  std::string strategy = {};  // --strategy; empty: the usual one
  bool rounds = false;        // true to count joint steps of all workers, and not those of each
  double gbps = 0;            // the rate of each host's link; 0: all tasks are on one host
  std::string place = {};     // the value of --lab-place; empty: each task has its own host
  bool bfloat16 = false;      // --wire
  int backups = 0;            // backup workers of a synchronous round
  int towers = 1;             // how many devices each worker has; each device makes a step
  bool straggler = false;     // the last worker is 3 times as slow, and only the others count
  double seconds = 6;         // of measuring
  double apart_s = 0;  // seconds between the starts of two workers; the slowest worker counts

  std::string full_name() const { return report + ", " + name; }
  /// The approximate seconds that a run takes.
  double expected_seconds() const;
};

/// The steps of a worker with `--strategy local_sgd` between two exchanges of a variable.
constexpr int kReportLocalSteps = 20;

/// All rows, report by report.
std::vector<ReportRow> report_rows();

}  // namespace paceline::bench
