// The figures that `paceline bench` has measured: printed one by one, and written as JSON
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
  /// The value that it is compared with: of a bare loop, a bound, a roof; in the same unit.
  struct Beside {
    std::string what;  // "bare socket loop"
    Summary value;
    Summary ratio;  // figure ÷ this, pair by pair
    /// A bound follows from these: each limit, with the rate that it alone would allow a worker.
    std::vector<std::pair<std::string, double>> terms = {};
  };
  std::string name;  // "tcp, 8 B there and back"
  std::string unit;  // "us"; empty: a plain number
  Summary value;
  std::optional<Beside> beside;
  std::vector<Series> series = {};  // where the figure is about something that changes
};

/// Make the figure of repeated measurements; `others` pairs with them by index.
Figure figure_of(std::string name, std::string unit, const std::vector<double>& values);
Figure figure_beside(std::string name, std::string unit, const std::vector<double>& values,
                     std::string what, const std::vector<double>& others);
/// "tcp, 8 B there and back   10.4 us  (10.1–10.9)   1.09 × bare socket loop (1.05–1.14)".
std::string line_of(const Figure& figure);

struct Table {
  std::string name;  // the case
  std::vector<Figure> figures;
};

/// The machine, the program and the command that figures were measured with.
struct Circumstances {
  std::string command, date, processor, paceline, onednn;
  int cores = 0, repeats = 0;
};

/// Returns the date in UTC, such as "2026-11-21".
std::string today();
/// The layout of docs/benchmarks.md, "--json".
std::string to_json(const Circumstances& circumstances, const std::vector<Table>& tables);

}  // namespace paceline::bench
