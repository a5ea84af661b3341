// The placement of variables: which rows of which variable live on which ps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// Where a variable is cut, readers of shared memory map one part after the other: so the cuts are
/// between pages of so many bytes, wherever that is possible.
constexpr std::size_t kSplitPageBytes = 4096;

/// Rows [first_row, first_row + rows) of a variable, on one ps. A scalar has one row.
struct Piece {
  std::uint32_t id = 0;  // position in the list of all pieces
  VariableId variable = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  int ps = 0;
  bool operator==(const Piece&) const = default;
};

/// Returns the part of ascending row numbers that is in the piece.
std::span<const std::int32_t> rows_in(const Piece& piece, std::span<const std::int32_t> ids);
std::size_t piece_bytes(const VariableSpec& variable, const Piece& piece);
/// True when the piece would begin at a page of memory if its variable did.
bool begins_at_page(const VariableSpec& variable, const Piece& piece);
/// True when all pieces of the variable do: then those who share memory with its ps tasks can map
/// one after the other, and read the variable there. Else its values are sent to them.
bool can_be_joined(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                   VariableId variable);

/// Places variables by bytes. Dense ones move whole at each step and sparse ones by a few rows, so
/// that each kind is placed by itself, as if there were no others: then both what is kept and what
/// is moved is even. The largest goes first onto the least loaded ps (Graham's longest processing
/// time first, SIAM J. Appl. Math. 1969); equal ones by position in the list. Those that do not fit
/// into a fair share are split by rows, last, so that they fill what the others have left, between
/// pages of them where that moves a cut by at most an eighth of a piece. Where a cut is within a
/// page then, they are split first, between pages, if all ps are still within 5% of even so. The
/// placement depends on the arguments only; the pieces are in order of variable, then row.
std::vector<Piece> place_variables(std::span<const VariableSpec> variables, int num_ps);

/// The part of the variables that one ps keeps.
struct KeptOnPs {
  std::size_t bytes = 0;          // of values
  std::string largest = {};       // the variable of its largest piece; empty: it has none
  std::size_t largest_bytes = 0;  // of that piece
};
KeptOnPs kept_on_ps(std::span<const VariableSpec> variables, std::span<const Piece> pieces, int ps);

/// Returns one line for each piece: variable, rows, bytes, ps.
std::string placement_text(std::span<const VariableSpec> variables, std::span<const Piece> pieces);

}  // namespace paceline
