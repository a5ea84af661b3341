#include "params/state_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"

namespace paceline {

StateRead::StateRead(std::span<const VariableSpec> specs, std::span<const Piece> pieces,
                     std::span<const VariableId> asked, int num_ps)
    : specs_(specs),
      pieces_(pieces),
      index_(specs.size(), -1),
      other_scalars_(pieces.size()),
      placed_(pieces.size()),
      missing_(std::size_t(num_ps)) {
  for (const VariableId variable : asked) {
    index_.at(std::size_t(variable)) = int(states_.size());
    states_.push_back(empty_state(variable));
  }
  for (const Piece& piece : pieces) {
    if (index_[std::size_t(piece.variable)] < 0) continue;
    placed_[piece.id].resize(1 + slots_of(specs[std::size_t(piece.variable)]).size());
    for (std::size_t i = 0; i < placed_[piece.id].size(); ++i) {
      missing_[std::size_t(piece.ps)] += std::int64_t(array(piece, i).size());
    }
  }
}

VariableState StateRead::empty_state(VariableId variable) const {
  const VariableSpec& spec = specs_[std::size_t(variable)];
  VariableState state{.variable = variable, .value = Tensor(spec.dtype, spec.shape), .slots = {}};
  for (const SlotSpec& slot : slots_of(spec)) {
    state.slots.emplace_back(slot.scalar ? DType::kInt64 : DType::kFloat32,
                             slot.scalar ? Shape{1} : spec.shape);
  }
  return state;
}

// Value, then slots.
std::span<std::byte> StateRead::array(const Piece& piece, std::size_t number) {
  const VariableSpec& spec = specs_[std::size_t(piece.variable)];
  const VariableState& state = states_[std::size_t(index_[std::size_t(piece.variable)])];
  const Tensor& tensor = number == 0 ? state.value : state.slots[number - 1];
  std::byte* const raw = static_cast<std::byte*>(tensor.raw());
  if (number == 0 || !slots_of(spec)[number - 1].scalar) {
    const std::size_t row = row_bytes(spec);
    return {raw + std::size_t(piece.first_row) * row, std::size_t(piece.rows) * row};
  }
  if (piece.first_row == 0) return {raw, kScalarSlotBytes};
  return std::as_writable_bytes(std::span(other_scalars_).subspan(piece.id, 1));
}

std::span<std::byte> StateRead::place(const FrameHeader& header) {
  if (header.id >= placed_.size() || header.flags >= placed_[header.id].size()) {
    throw Error(ErrorCode::kDataLoss, "[store] a state that nobody asked for");
  }
  const std::span<std::byte> all = array(pieces_[header.id], header.flags);
  std::size_t& placed = placed_[header.id][header.flags];
  if (header.offset != placed || header.payload_bytes > all.size() - placed) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[store] state of {} bytes at {} of piece {}, of which {} of {} came",
                            header.payload_bytes, header.offset, header.id, placed, all.size()));
  }
  return all.subspan(std::exchange(placed, placed + header.payload_bytes), header.payload_bytes);
}

std::int64_t StateRead::missing() const {
  std::int64_t bytes = 0;
  for (const auto& of_ps : missing_) bytes += of_ps;
  return bytes;
}

int StateRead::first_missing() const {
  return int(std::ranges::find_if(missing_, [](const auto& bytes) { return bytes > 0; }) -
             missing_.begin());
}

}  // namespace paceline
