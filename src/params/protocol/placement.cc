#include "params/protocol/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/row_count.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

std::size_t variable_bytes(const VariableSpec& variable) {
  return std::size_t(variable.shape.elements()) * size_of(variable.dtype);
}

// Returns the number of pieces that a variable is cut into so that none is larger than the fair
// share, as far as its rows allow.
std::int64_t cuts(const VariableSpec& variable, std::size_t total, int num_ps) {
  const std::size_t bytes = variable_bytes(variable);
  if (variable.trained && variable.rule.whole()) return 1;
  if (total == 0 || bytes * std::size_t(num_ps) <= total) return 1;
  const std::int64_t wanted = std::int64_t((bytes * std::size_t(num_ps) + total - 1) / total);
  return std::clamp<std::int64_t>(row_count(variable.shape), 1,
                                  std::min<std::int64_t>(wanted, num_ps));
}

// Returns the least number of rows that fills whole pages.
std::int64_t rows_of_pages(const VariableSpec& variable) {
  const std::size_t row = row_bytes(variable);
  return row == 0 ? 1 : std::int64_t(std::lcm(row, kSplitPageBytes) / row);
}

// Returns the first row of piece i of `count`.
std::int64_t cut_at(const VariableSpec& variable, std::int64_t i, std::int64_t count) {
  const std::int64_t rows = row_count(variable.shape), unit = rows_of_pages(variable);
  const std::int64_t exact = rows * i / count;
  if (i == 0 || i == count || unit > rows / count / 4) return exact;
  return (exact + unit / 2) / unit * unit;
}

std::vector<Piece> cut_variables(std::span<const VariableSpec> variables, int num_ps) {
  std::size_t total = 0;
  for (const VariableSpec& variable : variables) total += variable_bytes(variable);
  std::vector<Piece> pieces;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    const std::int64_t count = cuts(variables[v], total, num_ps);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t first = cut_at(variables[v], i, count);
      const std::int64_t rows = cut_at(variables[v], i + 1, count) - first;
      pieces.push_back({std::uint32_t(pieces.size()), VariableId(v), first, rows, 0});
    }
  }
  return pieces;
}

}  // namespace

std::span<const std::int32_t> rows_in(const Piece& piece, std::span<const std::int32_t> ids) {
  const auto first = std::lower_bound(ids.begin(), ids.end(), piece.first_row);
  const auto last = std::lower_bound(first, ids.end(), piece.first_row + piece.rows);
  return {first, last};
}

std::size_t piece_bytes(const VariableSpec& variable, const Piece& piece) {
  return std::size_t(piece.rows) * row_bytes(variable);
}

std::vector<Piece> place_variables(std::span<const VariableSpec> variables, int num_ps) {
  PACELINE_CHECK(num_ps > 0);
  std::vector<Piece> pieces = cut_variables(variables, num_ps);
  const auto bytes = [&](std::size_t i) {
    return piece_bytes(variables[std::size_t(pieces[i].variable)], pieces[i]);
  };
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes(a) > bytes(b); });
  std::vector<std::size_t> load(std::size_t(num_ps), 0);
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += bytes(i);
    pieces[i].ps = int(least - load.begin());
  }
  return pieces;
}

std::string placement_text(std::span<const VariableSpec> variables, std::span<const Piece> pieces) {
  std::string text;
  for (const Piece& piece : pieces) {
    const VariableSpec& variable = variables[std::size_t(piece.variable)];
    text += fmt::format("{} rows {}-{} of {}: {} bytes on ps:{}\n", variable.name, piece.first_row,
                        piece.first_row + piece.rows, row_count(variable.shape),
                        piece_bytes(variable, piece), piece.ps);
  }
  return text;
}

}  // namespace paceline
