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
  std::map<std::string, std::string> settings = {};  // of the model
  double device_ms = 0;                              // of a simulated device; 0: the cores compute
  std::string strategy;
  int ps = 0, workers = 1;
  std::string link;       // "shm", "tcp", "1 Gbit/s"
  double gbps = 0;        // of the link between hosts of their own; 0: all tasks share one
  bool bfloat16 = false;  // wire
  double seconds = 2;     // that are timed

  bool computed() const { return device_ms == 0; }
  bool alone() const { return ps == 0 && workers == 1; }
  /// "mlp, async, 1 ps + 4 workers, tcp".
  std::string name() const;
  /// The flags of `paceline train`, without the model.
  std::vector<std::string> flags() const;
};

/// All rows on simulated devices, in an order in which any beginning has some of all kinds.
std::vector<PredictionRow> prediction_rows();
/// Those that the cores compute; of each model one process is the first.
std::vector<PredictionRow> computed_rows();

}  // namespace paceline::bench
