// The figures that `paceline bench` has measured, which it prints one by one and writes as JSON
// (docs/benchmarks.md).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/summary.h"

namespace paceline::bench {

/// Values over time.
struct Series {
  std::string name;                               // "worker:0"
  std::vector<std::pair<double, double>> points;  // seconds, value
};

/// One line of a table.
struct Figure {
  /// The value beside the figure, in its unit: from a bare loop, a bound, or a roof.
  struct Beside {
    std::string what;  // "bare socket loop"
    Summary value;
    Summary ratio;  // figure ÷ this, pair by pair
    /// The limits that a bound follows from, each with the rate that it alone would allow a worker.
    std::vector<std::pair<std::string, double>> terms = {};
  };
  std::string name;  // "tcp, 8 B there and back"
  std::string unit;  // "us"; empty: a plain number
  Summary value;
  std::optional<Beside> beside;
  std::vector<Series> series = {};  // if the figure changes over time
};

/// Both make a figure from repeated measurements. `others[i]` was measured together with
/// `values[i]`.
Figure figure_of(std::string name, std::string unit, const std::vector<double>& values);
Figure figure_beside(std::string name, std::string unit, const std::vector<double>& values,
                     std::string what, const std::vector<double>& others);
/// Returns a line such as "tcp, 8 B there and back   10.4 us  (10.1–10.9)   1.09 × bare socket loop
/// (1.05–1.14)".
std::string line_of(const Figure& figure);

struct Table {
  std::string name;  // of the case
  std::vector<Figure> figures;
};

/// The machine, the program and the command behind the figures.
struct Circumstances {
  std::string command, date, processor, paceline, onednn;
  int cores = 0, repeats = 0;
};

/// Returns the date in UTC, such as "2026-11-21".
std::string today();
/// Returns JSON with the layout that docs/benchmarks.md describes under "--json".
std::string to_json(const Circumstances& circumstances, const std::vector<Table>& tables);

}  // namespace paceline::bench
