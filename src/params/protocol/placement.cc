#include "params/protocol/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/row_count.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

// A ps may have so much more than the fair share before a variable is split.
constexpr double kUneven = 0.05;

std::size_t variable_bytes(const VariableSpec& variable) {
  return std::size_t(variable.shape.elements()) * size_of(variable.dtype);
}

bool can_split(const VariableSpec& variable) {
  return row_count(variable.shape) > 1 && !(variable.trained && variable.rule.whole());
}

// Returns the row nearest to `row` that begins a page, if that moves the cut by at most an eighth
// of a piece of so many rows.
std::int64_t near_page(const VariableSpec& variable, std::int64_t row, std::int64_t rows) {
  const std::size_t bytes = row_bytes(variable);
  if (bytes == 0) return row;
  const auto unit = std::int64_t(std::lcm(bytes, kSplitPageBytes) / bytes);
  if (unit == 0 || unit > rows / 4) return row;
  return std::min((row + unit / 2) / unit * unit, row_count(variable.shape));
}

/// Places variables of one kind.
class EvenPlacement {
 public:
  EvenPlacement(std::span<const VariableSpec> variables, int num_ps, std::vector<Piece>& pieces)
      : variables_(variables), load_(std::size_t(num_ps), 0), pieces_(pieces) {}

  void place(std::vector<VariableId> list) {
    std::size_t total = 0;
    for (const VariableId v : list) total += bytes_of(v);
    share_ = (total + load_.size() - 1) / load_.size();
    std::ranges::stable_sort(list, std::ranges::greater(),
                             [this](VariableId v) { return bytes_of(v); });
    std::vector<VariableId> split;
    for (const VariableId v : list) {
      if (can_split(spec(v)) && !fits_whole(v)) {
        split.push_back(v);
      } else {
        add(v, 0, row_count(spec(v).shape), least_loaded());
      }
    }
    for (const VariableId v : split) deal_rows(v);
  }

 private:
  const VariableSpec& spec(VariableId v) const { return variables_[std::size_t(v)]; }
  std::size_t bytes_of(VariableId v) const { return variable_bytes(spec(v)); }
  int least_loaded() const { return int(std::ranges::min_element(load_) - load_.begin()); }
  std::size_t gap(int ps) const {
    const std::size_t load = load_[std::size_t(ps)];
    return load < share_ ? share_ - load : 0;
  }

  bool fits_whole(VariableId v) const {
    const std::size_t least = load_[std::size_t(least_loaded())], bytes = bytes_of(v);
    return bytes <= share_ && double(least + bytes) <= (1 + kUneven) * double(share_);
  }

  void add(VariableId v, std::int64_t first, std::int64_t rows, int ps) {
    const Piece piece{.variable = v, .first_row = first, .rows = rows, .ps = ps};
    load_[std::size_t(ps)] += piece_bytes(spec(v), piece);
    pieces_.push_back(piece);
  }

  // The largest gaps are filled.
  void deal_rows(VariableId v) {
    const std::int64_t rows = row_count(spec(v).shape);
    const auto row = double(row_bytes(spec(v)));
    for (std::int64_t first = 0; first < rows;) {
      const int ps = least_loaded();
      const auto fit = std::max<std::int64_t>(1, std::llround(double(gap(ps)) / row));
      const std::int64_t end = near_page(spec(v), std::min(first + fit, rows), fit);
      const bool tiny = double(rows - end) * row < kUneven / 2 * double(share_);
      const std::int64_t next = tiny || end <= first ? rows : end;
      add(v, first, next - first, ps);
      first = next;
    }
  }

  const std::span<const VariableSpec> variables_;
  std::vector<std::size_t> load_;
  std::vector<Piece>& pieces_;
  std::size_t share_ = 0;
};

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
  std::vector<Piece> pieces;
  for (const bool sparse : {false, true}) {
    std::vector<VariableId> kind;
    for (std::size_t v = 0; v < variables.size(); ++v) {
      if (variables[v].sparse == sparse) kind.push_back(VariableId(v));
    }
    EvenPlacement(variables, num_ps, pieces).place(std::move(kind));
  }
  std::ranges::sort(pieces, {},
                    [](const Piece& piece) { return std::pair(piece.variable, piece.first_row); });
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i].id = std::uint32_t(i);
  return pieces;
}

KeptOnPs kept_on_ps(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                    int ps) {
  KeptOnPs kept;
  for (const Piece& piece : pieces) {
    if (piece.ps != ps) continue;
    const std::size_t bytes = piece_bytes(variables[std::size_t(piece.variable)], piece);
    kept.bytes += bytes;
    if (bytes <= kept.largest_bytes) continue;
    kept.largest = variables[std::size_t(piece.variable)].name;
    kept.largest_bytes = bytes;
  }
  return kept;
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
