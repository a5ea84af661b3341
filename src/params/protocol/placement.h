// The placement of variables: which rows of which variable live on which ps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// The bytes of a page. A reader of shared memory maps the parts of a split variable one after the
/// other. This works only if every part begins at a page, so cuts lie between pages if possible.
constexpr std::size_t kSplitPageBytes = 4096;

/// Rows [first_row, first_row + rows) of a variable, on one ps. A scalar has one row.
struct Piece {
  std::uint32_t id = 0;  // index in the list of all pieces
  VariableId variable = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  int ps = 0;
  bool operator==(const Piece&) const = default;
};

/// Returns the row ids that are in the piece. `ids` must ascend.
std::span<const std::int32_t> rows_in(const Piece& piece, std::span<const std::int32_t> ids);
std::size_t piece_bytes(const VariableSpec& variable, const Piece& piece);
/// True when the piece begins at a page of memory if its variable begins at a page.
bool begins_at_page(const VariableSpec& variable, const Piece& piece);
/// True when all pieces of the variable begin at pages. Workers that share memory with the ps tasks
/// of these pieces can then map one piece after the other, and read the variable in that memory.
/// Otherwise the ps tasks send the variable's values to the workers.
bool can_be_joined(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                   VariableId variable);

/// Places variables by bytes. Dense variables move whole at each step, and sparse ones by a few
/// rows. So each kind is placed by itself, as if the other did not exist: then both the kept bytes
/// and the moved bytes are even.
///
/// Variables are placed in order of their size, the largest first, each on the ps with the smallest
/// load (Graham's longest processing time first, SIAM J. Appl. Math. 1969). Equally large variables
/// keep the order of the list.
///
/// A variable that does not fit into a fair share is split by rows. Such variables are split last,
/// so that their pieces fill the space that the others leave. A cut is moved to the nearest page
/// boundary if that moves it by at most an eighth of a piece. If some cut would still lie inside a
/// page, these variables are instead split first, between pages, provided that all ps tasks are
/// then within 5% of even.
///
/// The placement depends on the arguments only. The pieces are in order of variable, then row.
std::vector<Piece> place_variables(std::span<const VariableSpec> variables, int num_ps);

/// The part of the variables that one ps keeps.
struct KeptOnPs {
  std::size_t bytes = 0;          // bytes of values
  std::string largest = {};       // the variable of the ps's largest piece; empty: it has none
  std::size_t largest_bytes = 0;  // bytes of that piece
};
KeptOnPs kept_on_ps(std::span<const VariableSpec> variables, std::span<const Piece> pieces, int ps);

/// Returns one line for each piece: variable, rows, bytes, ps.
std::string placement_text(std::span<const VariableSpec> variables, std::span<const Piece> pieces);

}  // namespace paceline
