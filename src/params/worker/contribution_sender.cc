#include "params/worker/contribution_sender.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/buffer.h"
#include "params/variable_arrays.h"
#include "params/wire/largest_numbers.h"
#include "params/wire/rounded_floats.h"

namespace paceline {
namespace {

Shape place_shape(const WorkerState& core, const PlanBinding::Use& use) {
  return contribution_shape(core.variables()[std::size_t(use.variable)], use.most_rows);
}

std::size_t space_bytes(const WorkerState& core, const PlanBinding::Use& use) {
  const DType dtype = core.variables()[std::size_t(use.variable)].dtype;
  return round_up(std::size_t(place_shape(core, use).elements()) * size_of(dtype),
                  kBufferAlignment);
}

std::byte* start_of(const ContributionBuffer& space) {
  return static_cast<std::byte*>(space.values.data);
}

}  // namespace

// Returns the uses that need a larger space. The last contribution of a smaller plan must have been
// taken from the old space before.
std::vector<const PlanBinding::Use*> ContributionSender::uses_without_space(
    std::span<const PlanBinding::Use> uses) {
  std::vector<const PlanBinding::Use*> without;
  for (const PlanBinding::Use& use : uses) {
    ContributionBuffer& space = core_.space(use.variable);
    if (!use.updated || space.fits(place_shape(core_, use).elements())) continue;
    context_.wait_until_taken(use.variable);
    space.ids.reserve(std::size_t(use.most_rows));
    without.push_back(&use);
  }
  return without;
}

// Returns null when there is no ps on this host, or when too much has been shared with it.
std::shared_ptr<SharedMemory> ContributionSender::share_memory(std::size_t bytes) {
  std::shared_ptr<SharedMemory> memory;
  const bool few = context_.shared_memories < kMostSharedMemories &&
                   context_.shared_bytes + bytes <= most_shared_bytes(core_.variables());
  if (!core_.options().share_memory || !few) return memory;
  for (const auto& ps : context_.connections) {
    if (!ps->can_share()) continue;
    if (memory == nullptr) memory = SharedMemory::create(bytes);
    ps->share(context_.shared_memories, memory);
  }
  return memory;
}

// Makes the errors once, so that those of a step are not forgotten when another plan begins.
void ContributionSender::keep_errors(VariableId variable) const {
  ContributionBuffer& space = core_.space(variable);
  const VariableSpec& spec = core_.variables()[std::size_t(variable)];
  const bool rounds = std::ranges::any_of(core_.pieces_of(variable), [&](const Piece& piece) {
    return !context_.connection(piece).wire_of(spec.dtype).exact();
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
  ContributionBuffer::Place place{context_.shared_memories, 0};
  for (const PlanBinding::Use* use : uses) {
    ContributionBuffer& space = core_.space(use->variable);
    const DType dtype = core_.variables()[std::size_t(use->variable)].dtype;
    if (memory == nullptr) {
      space.use_own_memory(dtype, place_shape(core_, *use));
    } else {
      space.use(memory, place, dtype, place_shape(core_, *use));
    }
    place.offset += space_bytes(core_, *use);
    if (core_.options().wire.kept > 0) {
      space.largest = std::make_unique_for_overwrite<std::byte[]>(space_bytes(core_, *use));
    }
    keep_errors(use->variable);
  }
  if (memory == nullptr) return;
  ++context_.shared_memories;
  context_.shared_bytes += bytes;
}

void ContributionSender::take(VariableId variable, const Contribution& contribution) {
  const VariableSpec& spec = core_.variables()[std::size_t(variable)];
  if (!spec.sparse) return;
  std::vector<std::int32_t>& ids = core_.space(variable).ids;
  ids.assign(contribution.ids.begin(), contribution.ids.end());
  if (std::ranges::is_sorted(ids)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[store] rows of {} are not in ascending order", spec.name));
}

void ContributionSender::send(VariableId variable, std::uint64_t step, bool renew_copy) {
  ContributionBuffer& space = core_.space(variable);
  step_ = step;
  renew_copy_ = renew_copy;
  const bool sparse = core_.variables()[std::size_t(variable)].sparse;
  for (const Piece& piece : core_.pieces_of(variable)) {
    sparse ? send_rows(piece, space) : send_dense(piece, space);
  }
}

ContributionRoute ContributionSender::route(const Piece& piece,
                                            const ContributionBuffer& space) const {
  const PsConnection& ps = context_.connection(piece);
  return {.sparse = core_.variables()[std::size_t(piece.variable)].sparse,
          .in_shared_memory = space.shared && ps.can_share(),
          .memory = space.shared ? space.shared->memory : 0,
          .travels_as = ps.wire_of(space.values.dtype),
          .values_mapped = core_.mapped(piece.variable) != nullptr,
          .renew_copy = renew_copy_,
          .pulls_later = core_.options().aggregation.outdates_answers()};
}

// The numbers are rounded where they lie, or the largest are written beside them.
std::span<const std::byte> ContributionSender::as_it_travels(const ContributionForm& form,
                                                             ContributionBuffer& space, Cut part,
                                                             float* errors) const {
  const std::span<std::byte> numbers{start_of(space) + part.begin, part.size};
  if (form.kept == 0) return round_in_place(numbers, form.type, errors);
  std::byte* const to = space.largest.get() + part.begin;
  return {to, keep_largest(numbers, form, errors, to)};
}

void ContributionSender::send_dense(const Piece& piece, ContributionBuffer& space) {
  const std::size_t begin = std::size_t(piece.first_row) * core_.row_bytes(piece.variable);
  ContributionRoute how = route(piece, space);
  how.bytes = core_.bytes_of(piece);
  if (!how.values_mapped) core_.allocate(piece.variable);
  send_frames(piece, how, space, begin, {}, [&](const Cut part) {
    return as_it_travels(how.travels_as, space, {begin + part.begin, part.size},
                         space.errors_at((begin + part.begin) / sizeof(float)));
  });
}

void ContributionSender::send_rows(const Piece& piece, ContributionBuffer& space) {
  const std::span<const std::int32_t> ids = rows_in(piece, space.ids);
  const std::size_t row = core_.row_bytes(piece.variable);
  const std::size_t begin = std::size_t(ids.data() - space.ids.data()) * row;
  ContributionRoute how = route(piece, space);
  how.rows = ids.size();
  how.bytes = ids.size() * row;
  const bool rounded = !how.travels_as.exact() && !how.in_shared_memory;
  const bool feeds_back = rounded && !space.errors.empty() && how.bytes > 0;
  if (feeds_back) take_row_errors(ids, space, row);
  send_frames(piece, how, space, begin, ids, [&](const Cut part) {
    return as_it_travels(how.travels_as, space, {begin + part.begin, part.size},
                         feeds_back ? &row_errors_[part.begin / sizeof(float)] : nullptr);
  });
  if (feeds_back) put_row_errors(ids, space, row);
}

// Errors are kept by row of the variable. While rows are sent theirs follow one another.
void ContributionSender::take_row_errors(std::span<const std::int32_t> ids,
                                         ContributionBuffer& space, std::size_t row) {
  const std::size_t elements = row / sizeof(float);
  row_errors_.resize(ids.size() * elements);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::copy_n(space.errors_at(std::size_t(ids[i]) * elements), elements,
                &row_errors_[i * elements]);
  }
}

void ContributionSender::put_row_errors(std::span<const std::int32_t> ids,
                                        ContributionBuffer& space, std::size_t row) const {
  const std::size_t elements = row / sizeof(float);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::copy_n(&row_errors_[i * elements], elements,
                space.errors_at(std::size_t(ids[i]) * elements));
  }
}

// Offsets count float32 numbers; payload_of gives the bytes that travel for them. A contribution in
// shared memory is taken when the ps answers: then its space is free, and mapped values are new.
template <typename Payload>
void ContributionSender::send_frames(const Piece& piece, const ContributionRoute& route,
                                     ContributionBuffer& space, std::size_t begin,
                                     std::span<const std::int32_t> ids, Payload&& payload_of) {
  PsConnection& ps = context_.connection(piece);
  core_.expect(piece, awaited_after(route));
  for_contribution_frames(route, [&](const ContributionFrame& frame) {
    FrameHeader header{
        .flags = frame.flags, .id = piece.id, .offset = frame.part.begin, .step = step_};
    ++space.in_flight;
    if (frame.type == MessageType::kContribution) {
      header.offset = space.shared->offset + begin;
      return ps.send(frame.type, header, std::as_bytes(ids), nullptr, nullptr);
    }
    const bool chunk = frame.type == MessageType::kChunk;
    ps.send(frame.type, header, chunk ? payload_of(frame.part) : std::as_bytes(ids),
            &ContributionBuffer::sent, &space);
  });
}

}  // namespace paceline
