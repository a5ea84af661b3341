// Which rows of which variable live on which ps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

/// The part of ascending row numbers that is in the piece.
std::span<const std::int32_t> rows_in(const Piece& piece, std::span<const std::int32_t> ids);
std::int64_t row_elements(const VariableSpec& variable);
std::size_t row_bytes(const VariableSpec& variable);
/// Of the variable, or of as many rows as a step can contribute.
Shape contribution_shape(const VariableSpec& variable, std::int64_t most_rows);
/// Slots that are kept: none of a variable that is not trained; its rule's, then the moving
/// average, which begins as a copy of the value. A scalar one is an int64.
std::vector<SlotSpec> slots_of(const VariableSpec& variable);
/// Whether the last of its slots is a moving average.
bool has_average(const VariableSpec& variable);
constexpr std::string_view kAverageSlot = "average";
constexpr std::size_t kScalarSlotBytes = sizeof(std::int64_t);
std::size_t piece_bytes(const VariableSpec& variable, const Piece& piece);

/// Places variables by bytes, the largest first onto the least loaded ps (Graham's longest
/// processing time first, SIAM J. Appl. Math. 1969); equal ones by position in the list. A variable
/// larger than total/num_ps is split by rows first, between pages of it where that moves a cut by
/// at most an eighth of a piece. Depends on the arguments only; the pieces are in order of
/// variable, then row.
std::vector<Piece> place_variables(std::span<const VariableSpec> variables, int num_ps);

/// Whether the piece begins at a page of its variable, were that at a page.
bool begins_at_page(const VariableSpec& variable, const Piece& piece);

/// Where the values of one ps lie in its memory: one piece after the other, each at a multiple of
/// 64 bytes, one of several of its variable that begins at a page of that at a page; then the
/// versions of the chunks of each (chunk_versions.h). Depends on the arguments only, so that both
/// sides of shared memory agree.
struct ShardLayout {
  std::vector<std::size_t> offsets, versions;  // by piece id; only of those on this ps
  std::size_t bytes = 0;
};
ShardLayout shard_layout(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                         int ps);

/// One line a piece: variable, rows, bytes, ps.
std::string placement_text(std::span<const VariableSpec> variables, std::span<const Piece> pieces);

}  // namespace paceline
