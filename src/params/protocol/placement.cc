#include "params/protocol/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/row_count.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

// A variable is split when it is larger than the fair share, or when its ps would otherwise exceed
// the fair share by more than this fraction of the share.
constexpr double kUneven = 0.05;

std::size_t variable_bytes(const VariableSpec& variable) {
  return std::size_t(variable.shape.elements()) * size_of(variable.dtype);
}

bool can_split(const VariableSpec& variable) {
  return row_count(variable.shape) > 1 && !(variable.trained && variable.rule.whole());
}

// Returns the smallest number of rows that fill whole pages, so that the next row begins at a page;
// 0 if rows have no bytes.
std::int64_t rows_of_pages(const VariableSpec& variable) {
  const std::size_t bytes = row_bytes(variable);
  return bytes == 0 ? 0 : std::int64_t(std::lcm(bytes, kSplitPageBytes) / bytes);
}

/// Places variables of one kind. It splits by rows the variables that do not fit into a fair share.
class EvenPlacement {
 public:
  EvenPlacement(std::span<const VariableSpec> variables, int num_ps)
      : variables_(variables), load_(std::size_t(num_ps), 0) {}

  /// Splits these variables after the others, so that their pieces fill the space that the others
  /// leave. Cuts lie between pages if that moves them by at most an eighth of a piece.
  void split_last(std::vector<VariableId> list) {
    begin(list);
    std::vector<VariableId> split;
    for (const VariableId v : list) {
      if (must_split(v)) {
        split.push_back(v);
      } else {
        add_whole(v);
      }
    }
    for (const VariableId v : split) deal_rows(v, false);
  }

  /// Splits these variables before the others, and only between pages. The others then fill the
  /// space that the pieces leave.
  void split_first(std::vector<VariableId> list) {
    begin(list);
    for (const VariableId v : list) {
      if (must_split(v)) {
        deal_rows(v, true);
      } else {
        add_whole(v);
      }
    }
  }

  const std::vector<Piece>& pieces() const { return pieces_; }
  bool even() const {
    return double(std::ranges::max(load_)) <= (1 + kUneven) * double(share_) &&
           double(std::ranges::min(load_)) >= (1 - kUneven) * double(share_);
  }
  bool cut_between_pages() const {
    return std::ranges::all_of(pieces_, [this](const Piece& piece) {
      return begins_at_page(spec(piece.variable), piece);
    });
  }

 private:
  const VariableSpec& spec(VariableId v) const { return variables_[std::size_t(v)]; }
  std::size_t bytes_of(VariableId v) const { return variable_bytes(spec(v)); }
  int least_loaded() const { return int(std::ranges::min_element(load_) - load_.begin()); }
  std::size_t gap(int ps) const {
    const std::size_t load = load_[std::size_t(ps)];
    return load < share_ ? share_ - load : 0;
  }

  void begin(std::vector<VariableId>& list) {
    std::size_t total = 0;
    for (const VariableId v : list) total += bytes_of(v);
    share_ = (total + load_.size() - 1) / load_.size();
    std::ranges::stable_sort(list, std::ranges::greater(),
                             [this](VariableId v) { return bytes_of(v); });
  }

  bool must_split(VariableId v) const {
    const std::size_t least = load_[std::size_t(least_loaded())], bytes = bytes_of(v);
    const bool fits = bytes <= share_ && double(least + bytes) <= (1 + kUneven) * double(share_);
    return can_split(spec(v)) && !fits;
  }

  void add(VariableId v, std::int64_t first, std::int64_t rows, int ps) {
    const Piece piece{.variable = v, .first_row = first, .rows = rows, .ps = ps};
    load_[std::size_t(ps)] += piece_bytes(spec(v), piece);
    const bool goes_on = first > 0 && pieces_.back().ps == ps;
    if (goes_on) {
      pieces_.back().rows += rows;
    } else {
      pieces_.push_back(piece);
    }
  }
  void add_whole(VariableId v) { add(v, 0, row_count(spec(v).shape), least_loaded()); }

  // Gives rows to the ps with the smallest load until it has the fair share, then to the next such
  // ps.
  void deal_rows(VariableId v, bool only_between_pages) {
    const std::int64_t rows = row_count(spec(v).shape), unit = rows_of_pages(spec(v));
    const auto row = double(row_bytes(spec(v)));
    for (std::int64_t first = 0; first < rows;) {
      const int ps = least_loaded();
      const auto fit = std::max<std::int64_t>(1, std::llround(double(gap(ps)) / row));
      std::int64_t end = std::min(first + fit, rows);
      if (unit > 0 && (only_between_pages || unit <= fit / 4)) {
        end = std::min((end + unit / 2) / unit * unit, rows);
      }
      const bool tiny = double(rows - end) * row < kUneven / 2 * double(share_);
      const std::int64_t next = tiny || end <= first ? rows : end;
      add(v, first, next - first, ps);
      first = next;
    }
  }

  const std::span<const VariableSpec> variables_;
  std::vector<std::size_t> load_;
  std::vector<Piece> pieces_;
  std::size_t share_ = 0;
};

std::vector<Piece> placed(std::span<const VariableSpec> variables,
                          const std::vector<VariableId>& list, int num_ps) {
  EvenPlacement last(variables, num_ps);
  last.split_last(list);
  if (last.cut_between_pages()) return last.pieces();
  EvenPlacement first(variables, num_ps);
  first.split_first(list);
  return first.even() && first.cut_between_pages() ? first.pieces() : last.pieces();
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

bool begins_at_page(const VariableSpec& variable, const Piece& piece) {
  return std::size_t(piece.first_row) * row_bytes(variable) % kSplitPageBytes == 0;
}

bool can_be_joined(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                   VariableId variable) {
  return std::ranges::all_of(pieces, [&](const Piece& piece) {
    return piece.variable != variable || begins_at_page(variables[std::size_t(variable)], piece);
  });
}

std::vector<Piece> place_variables(std::span<const VariableSpec> variables, int num_ps) {
  PACELINE_CHECK(num_ps > 0);
  std::vector<Piece> pieces;
  for (const bool sparse : {false, true}) {
    std::vector<VariableId> kind;
    for (std::size_t v = 0; v < variables.size(); ++v) {
      if (variables[v].sparse == sparse) kind.push_back(VariableId(v));
    }
    std::ranges::copy(placed(variables, kind, num_ps), std::back_inserter(pieces));
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
