// The configurations whose speed is predicted and then measured.
#pragma once

#include <string>
#include <vector>

namespace paceline::bench {

/// One configuration: a workload on simulated devices, with real links, rules and tasks.
struct ForesightRow {
  std::string model;
  double device_ms = 0;
  std::string strategy;
  int ps = 0, workers = 1;
  std::string link;       // "shm", "tcp", "1 Gbit/s"
  bool bfloat16 = false;  // wire
  double seconds = 2;     // that are timed

  /// "mlp, async, 1 ps + 4 workers, tcp".
  std::string name() const;
  /// The flags of `paceline train`, without the model.
  std::vector<std::string> flags() const;
};

/// All rows, in an order in which any beginning has some of all kinds.
std::vector<ForesightRow> foresight_rows();

}  // namespace paceline::bench
