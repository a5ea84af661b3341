// The file of predicted speeds beside measured ones.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "evidence/prediction_rows.h"
#include "predict/prediction.h"
#include "run/report/report.h"

namespace paceline::bench {

/// The result of a row: what it expected and what it reached.
struct PredictionResult {
  PredictedHost host;  // the host as measured shortly before the row
  ExpectedSpeed expected;
  double made = 0;  // steps/s that it reached
  /// The share by which the roof had changed afterwards; nothing: it was not measured again.
  std::optional<double> roof_moved = {};

  double ratio() const { return made / expected.steps_per_s; }
};

/// Returns the largest change of a rate that kernels or rules depend on: the rate of products, and
/// that of rules' passes over memory. It ignores the rate of passes over one array, because this
/// rate jumps between two values, no matter what else runs.
double roof_change(const PredictedHost& before, const PredictedHost& after);
/// A row whose roof moved by more than this is set apart.
constexpr double kRoofMayMove = 0.05;

/// A CSV file with one row in each line.
class PredictionFile {
 public:
  /// Makes the file if there is none. Throws kFailedPrecondition if it has other columns, and
  /// kUnavailable, as add() does, if it cannot be written.
  explicit PredictionFile(std::string path);

  /// True if this version has measured the row.
  bool knows(const PredictionRow& row) const;
  /// True if any version has measured the row.
  bool has(const PredictionRow& row) const;
  void add(const PredictionRow& row, const PredictionResult& result) const;

 private:
  const std::string path_, commit_;
  std::set<std::string> known_, others_;  // lines of this version, and of others
};

}  // namespace paceline::bench
