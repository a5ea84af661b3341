#include "bench/figures.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

namespace paceline::bench {
namespace {

// Returns the number with about four digits, and without an exponent, since a person reads it.
std::string number(double value) {
  const double size = std::abs(value);
  if (size >= 1000) return fmt::format("{:.0f}", value);
  if (size >= 100) return fmt::format("{:.1f}", value);
  if (size >= 10) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

std::string spread(const Summary& summary) {
  return summary.count < 2 ? "" : fmt::format("({}–{})", number(summary.low), number(summary.high));
}

}  // namespace

std::string today() { return fmt::format("{:%F}", fmt::gmtime(std::time(nullptr))); }

Figure figure_of(std::string name, std::string unit, const std::vector<double>& values) {
  return {std::move(name), std::move(unit), summarize(values), {}, {}};
}

Figure figure_beside(std::string name, std::string unit, const std::vector<double>& values,
                     std::string what, const std::vector<double>& others) {
  Figure figure = figure_of(std::move(name), std::move(unit), values);
  figure.beside =
      Figure::Beside{std::move(what), summarize(others), summarize(paired_ratios(values, others))};
  return figure;
}

std::string line_of(const Figure& figure) {
  std::string line = fmt::format("  {:<52}{:>10} {:<8}{:<20}", figure.name,
                                 number(figure.value.median), figure.unit, spread(figure.value));
  if (figure.beside) {
    const Figure::Beside& beside = *figure.beside;
    line += fmt::format("{:>8} × {} of {} {} {}", number(beside.ratio.median), beside.what,
                        number(beside.value.median), figure.unit, spread(beside.ratio));
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace paceline::bench
