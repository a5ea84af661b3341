// The file of predicted speeds beside measured ones.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "evidence/prediction_rows.h"
#include "predict/prediction.h"
#include "run/report/report.h"

namespace paceline::bench {

/// The result of a row: what it expected and what it made.
struct PredictionResult {
  PredictedHost host;  // as it was measured before, and shortly before that
  ExpectedSpeed expected;
  double made = 0;  // steps/s
  /// The share by which the roof was another one afterwards; nothing: it was not measured again.
  std::optional<double> roof_moved = {};

  double ratio() const { return made / expected.steps_per_s; }
};

/// The largest change of a rate that kernels or rules depend on: of products, and of the passes of
/// rules over memory. A pass over one array has two rates, whatever else runs.
double roof_change(const PredictedHost& before, const PredictedHost& after);
/// A row whose roof moved by more is set apart.
constexpr double kRoofMayMove = 0.05;

/// A file of CSV, a row in each line.
class PredictionFile {
 public:
  /// Makes the file where there is none. Throws kFailedPrecondition when it has other columns, and
  /// kUnavailable, as add() does, when it cannot be written.
  explicit PredictionFile(std::string path);

  /// True when this version has measured the row.
  bool knows(const PredictionRow& row) const;
  /// True when some version has.
  bool has(const PredictionRow& row) const;
  void add(const PredictionRow& row, const PredictionResult& result) const;

 private:
  const std::string path_, commit_;
  std::set<std::string> known_, others_;  // lines of this version, and of others
};

}  // namespace paceline::bench
