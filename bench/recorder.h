// The figures of a measurement: printed when they are there, kept for --json.
#pragma once

#include <string>
#include <vector>

#include "bench/figures.h"

namespace paceline::bench {

/// One thread.
class Recorder {
 public:
  Recorder();

  /// The number of measurements of every figure.
  int repeats() const { return repeats_; }
  /// The figures that follow belong to this table, and are measured so often.
  void begin(const std::string& table, int repeats);
  void add(Figure figure);
  /// Prints a line that says why there is no figure, or what one means.
  void note(const std::string& text);
  /// Says what is being measured now, on a terminal, until the next line takes its place.
  void progress(const std::string& text);
  const std::vector<Table>& tables() const { return tables_; }

 private:
  void print(const std::string& line);

  int repeats_ = 1;
  bool terminal_;
  std::vector<Table> tables_;
};

}  // namespace paceline::bench
