#include "params/worker/contribution_sender.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/buffer.h"
#include "params/variable_arrays.h"
#include "params/wire/rounded_floats.h"

namespace paceline {
namespace {

Shape place_shape(const Arrivals& core, const PlanBinding::Use& use) {
  return contribution_shape(core.variables()[std::size_t(use.variable)], use.most_rows);
}

std::size_t space_bytes(const Arrivals& core, const PlanBinding::Use& use) {
  const DType dtype = core.variables()[std::size_t(use.variable)].dtype;
  return round_up(std::size_t(place_shape(core, use).elements()) * size_of(dtype),
                  kBufferAlignment);
}

std::byte* start_of(const ContributionBuffer& space) {
  return static_cast<std::byte*>(space.values.data);
}

}  // namespace

// A larger plan: what the smaller one sent last must have been taken from the old space.
std::vector<const PlanBinding::Use*> ContributionSender::uses_without_space(
    std::span<const PlanBinding::Use> uses) {
  std::vector<const PlanBinding::Use*> without;
  for (const PlanBinding::Use& use : uses) {
    ContributionBuffer& space = core_.space(use.variable);
    if (!use.updated || space.fits(place_shape(core_, use).elements())) continue;
    state_.wait_until_taken(use.variable);
    space.ids.reserve(std::size_t(use.most_rows));
    without.push_back(&use);
  }
  return without;
}

// Null: there is no ps on this host, or too much has been shared with it.
std::shared_ptr<SharedMemory> ContributionSender::share_memory(std::size_t bytes) {
  std::shared_ptr<SharedMemory> memory;
  const bool few = state_.shared_memories < kMostSharedMemories &&
                   state_.shared_bytes + bytes <= most_shared_bytes(core_.variables());
  if (!core_.options().share_memory || !few) return memory;
  for (const auto& ps : state_.connections) {
    if (!ps->can_share()) continue;
    if (memory == nullptr) memory = SharedMemory::create(bytes);
    ps->share(state_.shared_memories, memory);
  }
  return memory;
}

// Once, so that what a step left out is not forgotten when another plan begins.
void ContributionSender::keep_errors(VariableId variable) const {
  ContributionBuffer& space = core_.space(variable);
  const VariableSpec& spec = core_.variables()[std::size_t(variable)];
  const bool rounds = std::ranges::any_of(core_.pieces_of(variable), [&](const Piece& piece) {
    return state_.connection(piece).rounds(spec.dtype);
  });
  if (core_.options().error_feedback && rounds && space.errors.empty()) {
    space.errors.assign(std::size_t(spec.shape.elements()), 0.0f);
  }
}

void ContributionSender::make_spaces(std::span<const PlanBinding::Use> all) {
  const std::vector<const PlanBinding::Use*> uses = uses_without_space(all);
  std::size_t bytes = 0;
  for (const PlanBinding::Use* use : uses) bytes += space_bytes(core_, *use);
  const auto memory = bytes > 0 ? share_memory(bytes) : nullptr;
  ContributionBuffer::Place place{state_.shared_memories, 0};
  for (const PlanBinding::Use* use : uses) {
    ContributionBuffer& space = core_.space(use->variable);
    const DType dtype = core_.variables()[std::size_t(use->variable)].dtype;
    if (memory == nullptr) {
      space.use_own_memory(dtype, place_shape(core_, *use));
    } else {
      space.use(memory, place, dtype, place_shape(core_, *use));
    }
    place.offset += space_bytes(core_, *use);
    keep_errors(use->variable);
  }
  if (memory == nullptr) return;
  ++state_.shared_memories;
  state_.shared_bytes += bytes;
}

void ContributionSender::send(VariableId variable, const Contribution& contribution,
                              std::uint64_t step, bool renew_copy) {
  ContributionBuffer& space = core_.space(variable);
  step_ = step;
  renew_copy_ = renew_copy;
  if (core_.variables()[std::size_t(variable)].sparse) {
    space.ids.assign(contribution.ids.begin(), contribution.ids.end());
    if (!std::is_sorted(space.ids.begin(), space.ids.end())) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[store] rows of {} are not in ascending order",
                              core_.variables()[std::size_t(variable)].name));
    }
    for (const Piece& piece : core_.pieces_of(variable)) send_rows(piece, space);
    return;
  }
  for (const Piece& piece : core_.pieces_of(variable)) send_dense(piece, space);
}

void ContributionSender::send_dense(const Piece& piece, ContributionBuffer& space) {
  const std::size_t begin = std::size_t(piece.first_row) * core_.row_bytes(piece.variable);
  const std::size_t bytes = core_.bytes_of(piece);
  if (core_.mapped(piece.variable) == nullptr) {
    core_.allocate(piece.variable);
    core_.expect(piece, bytes);
  }
  if (space.shared && state_.connection(piece).can_share()) {
    return send_place(piece, {}, space, begin);
  }
  const bool rounds = state_.connection(piece).rounds(space.values.dtype);
  send_frames(piece, space, bytes, [&](std::size_t offset, std::size_t size) {
    const std::span<std::byte> floats(start_of(space) + begin + offset, size);
    if (!rounds) return std::span<const std::byte>(floats);
    return round_in_place(floats, space.errors_at((begin + offset) / sizeof(float)));
  });
}

// Taken is what the ps answers: then the space is free, and what is mapped has its new value.
void ContributionSender::send_place(const Piece& piece, std::span<const std::int32_t> ids,
                                    ContributionBuffer& space, std::size_t begin) {
  const bool mapped = core_.mapped(piece.variable) != nullptr;
  const std::uint32_t wanted = renew_copy_ ? kRenewCopy : mapped ? 0 : kSendValues;
  const FrameHeader header{.flags = std::uint16_t(space.shared->memory * kMemoryNumber + wanted),
                           .id = piece.id,
                           .offset = space.shared->offset + begin,
                           .step = step_};
  if (mapped) core_.expect(piece, 1);
  ++space.in_flight;
  state_.connection(piece).send(MessageType::kContribution, header, std::as_bytes(ids), nullptr,
                                nullptr);
}

// Offsets are those of float32 numbers; payload_at gives what travels of them.
template <typename Round>
void ContributionSender::send_frames(const Piece& piece, ContributionBuffer& space,
                                     std::size_t bytes, Round&& payload_at) {
  for (std::size_t offset = 0; offset < bytes; offset += kChunkBytes) {
    ++space.in_flight;
    state_.connection(piece).send(MessageType::kChunk,
                                  {.id = piece.id, .offset = offset, .step = step_},
                                  payload_at(offset, std::min(kChunkBytes, bytes - offset)),
                                  &ContributionBuffer::sent, &space);
  }
}

// Also when none of the rows is in the piece: the rule counts contributions to every piece alike.
void ContributionSender::send_rows(const Piece& piece, ContributionBuffer& space) {
  const std::span<const std::int32_t> ids = rows_in(piece, space.ids);
  const std::size_t row = core_.row_bytes(piece.variable);
  const std::size_t before = std::size_t(ids.data() - space.ids.data()) * row;
  PsConnection& ps = state_.connection(piece);
  if (space.shared && ps.can_share()) return send_place(piece, ids, space, before);
  ++space.in_flight;
  ps.send(MessageType::kRowIds, {.id = piece.id, .step = step_}, std::as_bytes(ids),
          &ContributionBuffer::sent, &space);
  if (ps.rounds(space.values.dtype)) return send_rounded_rows(piece, ids, space, before);
  send_frames(piece, space, ids.size() * row, [&](std::size_t offset, std::size_t size) {
    return std::span<const std::byte>(start_of(space) + before + offset, size);
  });
}

// Each row has its errors elsewhere; rounded they lie one after the other again.
void ContributionSender::send_rounded_rows(const Piece& piece, std::span<const std::int32_t> ids,
                                           ContributionBuffer& space, std::size_t before) {
  const std::size_t row = core_.row_bytes(piece.variable), elements = row / sizeof(float);
  std::byte* const start = start_of(space) + before;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    round_to({reinterpret_cast<float*>(start + i * row), elements},
             space.errors_at(std::size_t(ids[i]) * elements), start + i * row / 2);
  }
  send_frames(piece, space, ids.size() * row, [&](std::size_t offset, std::size_t size) {
    return std::span<const std::byte>(start + offset / 2, size / 2);
  });
}

}  // namespace paceline
