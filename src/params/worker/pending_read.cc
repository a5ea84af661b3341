#include "params/worker/pending_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/variable_arrays.h"

namespace paceline {

namespace {

VariableState empty_state(VariableId variable, const VariableSpec& spec) {
  VariableState state{.variable = variable, .value = Tensor(spec.dtype, spec.shape), .slots = {}};
  for (const SlotSpec& slot : slots_of(spec)) {
    state.slots.emplace_back(slot.scalar ? DType::kInt64 : DType::kFloat32,
                             slot.scalar ? Shape{1} : spec.shape);
  }
  return state;
}

}  // namespace

PendingRead::PendingRead(std::span<const VariableSpec> specs, std::span<const Piece> pieces,
                         std::span<const VariableId> asked, int num_ps)
    : other_scalars_(pieces.size()), arrays_(pieces.size()), owed_(std::size_t(num_ps)) {
  std::vector<int> index(specs.size(), -1);
  for (const VariableId variable : asked) {
    index.at(std::size_t(variable)) = int(states_.size());
    states_.push_back(empty_state(variable, specs[std::size_t(variable)]));
  }
  for (const Piece& piece : pieces) {
    const int at = index[std::size_t(piece.variable)];
    if (at < 0) continue;
    expect(piece, specs[std::size_t(piece.variable)], states_[std::size_t(at)]);
  }
}

void PendingRead::expect(const Piece& piece, const VariableSpec& spec, VariableState& state) {
  const std::size_t row = row_bytes(spec);
  const auto rows_of = [&](const Tensor& tensor) -> std::span<std::byte> {
    return {static_cast<std::byte*>(tensor.raw()) + std::size_t(piece.first_row) * row,
            std::size_t(piece.rows) * row};
  };
  std::vector<Array>& arrays = arrays_[piece.id];
  arrays.push_back({rows_of(state.value)});
  const std::vector<SlotSpec> slots = slots_of(spec);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].scalar) {
      arrays.push_back({rows_of(state.slots[i])});
    } else if (piece.first_row == 0) {
      arrays.push_back({std::as_writable_bytes(state.slots[i].data<std::int64_t>())});
    } else {
      arrays.push_back({std::as_writable_bytes(std::span(other_scalars_).subspan(piece.id, 1))});
    }
  }
  for (const Array& array : arrays) {
    owed_[std::size_t(piece.ps)] += std::int64_t(array.memory.size());
    missing_ += std::int64_t(array.memory.size());
  }
}

std::span<std::byte> PendingRead::place(const FrameHeader& header) {
  if (header.id >= arrays_.size() || header.flags >= arrays_[header.id].size()) {
    throw Error(ErrorCode::kDataLoss, "[store] a state that nobody asked for");
  }
  const auto& [memory, arrived] = arrays_[header.id][header.flags];
  if (header.offset != arrived || header.payload_bytes > memory.size() - arrived) {
    throw Error(
        ErrorCode::kDataLoss,
        fmt::format("[store] state of {} bytes at {} of piece {}, of which {} of {} came",
                    header.payload_bytes, header.offset, header.id, arrived, memory.size()));
  }
  return memory.subspan(arrived, header.payload_bytes);
}

bool PendingRead::arrived(int ps, const FrameHeader& header) {
  const std::int64_t bytes = header.payload_bytes;
  arrays_[header.id][header.flags].arrived += std::size_t(bytes);
  owed_[std::size_t(ps)] -= bytes;
  return (missing_ -= bytes) <= 0;
}

int PendingRead::first_missing() const {
  const auto owes = [](const auto& bytes) { return bytes > 0; };
  const auto first = std::ranges::find_if(owed_, owes);
  return first == owed_.end() ? 0 : int(first - owed_.begin());
}

}  // namespace paceline
