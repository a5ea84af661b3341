// The mark of a run's best checkpoint, with the number by which it is the best:
// CHECKPOINTS/best.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

/// The number by which the checkpoints of a run are compared.
struct BestBy {
  std::string name;      // "loss/valid"
  bool largest = false;  // the largest number is the best; else the smallest
  /// True if `value` is the better number. False if it is infinite or NaN.
  bool better(double value, double than) const;
  bool operator==(const BestBy&) const = default;
};

/// The content of best.json. A run that keeps its best checkpoint writes the file before its first
/// evaluation, so that an evaluator beside the run knows the number.
struct BestMark {
  struct Checkpoint {
    std::int64_t step = 0;
    double value = 0;
    bool operator==(const Checkpoint&) const = default;
  };

  BestBy by;
  std::optional<Checkpoint> best = {};  // nothing: none was evaluated yet

  std::string to_json() const;
  /// Throws kDataLoss, with a message that begins with `path`, when the text is not a mark.
  static BestMark from_json(std::string_view json, const std::string& path);
  bool operator==(const BestMark&) const = default;
};

/// The numbers that an evaluation beside a run found for a checkpoint, in
/// CHECKPOINTS/evaluated-N.json.
struct EvaluationReport {
  std::int64_t step = 0;
  std::map<std::string, double> numbers;  // by name; finite

  std::string to_json() const;
  /// Throws kDataLoss, with a message that begins with `path`, when the text is not a report.
  static EvaluationReport from_json(std::string_view json, const std::string& path);
};

}  // namespace paceline
