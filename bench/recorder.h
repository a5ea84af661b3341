// The figures of a measurement: printed as soon as they are known, and kept for --json.
#pragma once

#include <string>
#include <vector>

#include "bench/figures.h"

namespace paceline::bench {

/// For one thread.
class Recorder {
 public:
  Recorder();

  /// The number of measurements of every figure.
  int repeats() const { return repeats_; }
  /// Begins a table: the figures that follow belong to it, and each is measured `repeats` times.
  void begin(const std::string& table, int repeats);
  void add(Figure figure);
  /// Prints a line that says why there is no figure, or what a figure means.
  void note(const std::string& text);
  /// Shows on a terminal what is being measured, until the next line replaces it.
  void progress(const std::string& text);
  const std::vector<Table>& tables() const { return tables_; }

 private:
  void print(const std::string& line);

  int repeats_ = 1;
  bool terminal_;
  std::vector<Table> tables_;
};

}  // namespace paceline::bench
