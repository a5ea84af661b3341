// The configurations whose speed is predicted and then measured.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace paceline::bench {

/// One configuration: a workload on simulated devices, or on this machine's cores, with real links,
/// rules and tasks.
struct PredictionRow {
  std::string model;
  std::map<std::string, std::string> settings = {};  // settings of the model
  double device_ms = 0;  // the time of a simulated device's step; 0: the cores compute
  std::string strategy;
  int ps = 0, workers = 1;
  std::string link;  // "shm", "tcp", "1 Gbit/s"
  double gbps = 0;   // the rate of the link of each task's own host; 0: all tasks share one host
  bool bfloat16 = false;  // the wire has bfloat16
  double seconds = 2;     // of timing

  bool computed() const { return device_ms == 0; }
  bool alone() const { return ps == 0 && workers == 1; }
  /// Returns a name such as "mlp, async, 1 ps + 4 workers, tcp".
  std::string name() const;
  /// Returns the flags of `paceline train`, without the model.
  std::vector<std::string> flags() const;
};

/// Returns all rows on simulated devices, in an order in which the first rows are already of all
/// kinds.
std::vector<PredictionRow> prediction_rows();
/// Returns the rows that the cores compute; for each model, one process comes first.
std::vector<PredictionRow> computed_rows();

}  // namespace paceline::bench
