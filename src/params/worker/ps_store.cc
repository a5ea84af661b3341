#include "params/worker/ps_store.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <utility>

#include "base/buffer.h"
#include "base/check.h"
#include "base/copy_bytes.h"
#include "checkpoint/checkpoint_save.h"
#include "net/tls/link_security.h"
#include "paceline/error.h"
#include "params/protocol/ask_ahead.h"
#include "params/protocol/frame_cuts.h"
#include "params/protocol/value_requests.h"
#include "params/shard/saved_variables.h"
#include "params/variable_arrays.h"
#include "params/wire/fields.h"
#include "params/wire/largest_numbers.h"
#include "params/wire/round_messages.h"
#include "params/wire/rounded_floats.h"
#include "params/wire/traced_messages.h"
#include "params/worker/ps_connection.h"
#include "params/worker/worker_context.h"
#include "params/worker/worker_driver.h"
#include "params/worker/worker_state.h"

namespace paceline {
namespace {

/// Makes the fetch steps of one plan over frames, by the decisions of protocol/ask_ahead.h. A fetch
/// step that needs a value asks for the next value, too, which the ps sends once the variable has
/// changed. The next value arrives in memory of its own (PulledValue), from which a later step
/// takes it. If a step already knows of a newer version when it begins, it pulls that version
/// instead. Only the step thread calls this object.
class FetchAhead {
 public:
  explicit FetchAhead(WorkerContext& context);

  /// True when the step has to ask for the value.
  bool must_pull(VariableId variable) const;
  /// Notes that this step pulls the value.
  void note_pulled(VariableId variable);
  /// True when the step must wait for the next value.
  bool waits(VariableId variable) const;
  /// Call it in a step that needs the variable. Takes the value that has arrived ahead, if that
  /// value is newer than the held one, and asks for the next value.
  void go_on(VariableId variable);

 private:
  KnownValue known(VariableId variable) const;
  bool fits_one_frame(VariableId variable) const;

  WorkerContext& context_;
  WorkerState& core_;
  AskAhead machine_;
};

FetchAhead::FetchAhead(WorkerContext& context)
    : context_(context), core_(context.core), machine_(core_.variables().size()) {}

// A thread of the link first notes that the next value has arrived, and then notes its version.
// This function reads the two notes in the same order. So it does not pull a value that arrives
// between the two reads.
KnownValue FetchAhead::known(VariableId variable) const {
  KnownValue known;
  known.by_fetch = context_.held[std::size_t(variable)] == Freshness::kByFetch;
  known.changes_after_reads = core_.changes_after_reads(variable);
  known.next_asked = core_.pulled(variable).next_asked();
  known.changed = core_.changed(variable);
  known.next_came = core_.pulled(variable).next_came();
  known.next_is_newest = core_.next_is_newest(variable);
  return known;
}

bool FetchAhead::must_pull(VariableId variable) const {
  return AskAhead::must_pull(known(variable));
}

void FetchAhead::note_pulled(VariableId variable) { machine_.pulled(variable, known(variable)); }

bool FetchAhead::waits(VariableId variable) const {
  return machine_.waits(variable, core_.pulled(variable).next_asked(),
                        core_.changes_after_reads(variable), context_.uses);
}

bool FetchAhead::fits_one_frame(VariableId variable) const {
  const std::span<const Piece> pieces = core_.pieces_of(variable);
  if (pieces.size() != 1 || core_.variables()[std::size_t(variable)].sparse) return false;
  const std::size_t bytes = core_.bytes_of(pieces.front());
  return bytes > 0 && bytes <= kChunkBytes;
}

void FetchAhead::go_on(VariableId variable) {
  const AskAhead::Decision decision = machine_.needed(variable, core_.next_is_newer(variable),
                                                      fits_one_frame(variable), context_.uses);
  if (decision.take_next) core_.take_next(variable);
  if (!decision.ask_next) return;
  core_.pulled(variable).ask_next();
  const Piece& piece = core_.pieces_of(variable).front();
  context_.connection(piece).send(MessageType::kPullNext,
                                  {.id = piece.id, .step = core_.held_version(piece)}, {}, nullptr,
                                  nullptr);
}

/// Sends the contributions of one plan to the shards, in frames as protocol/frame_cuts.h cuts them.
/// A ps that reads shared memory is sent only the place of the contribution. Only the step thread
/// calls this object.
class ContributionSender {
 public:
  explicit ContributionSender(WorkerContext& context) : context_(context), core_(context.core) {}

  /// Makes space for the contributions of these uses. The space lies in shared memory if ps tasks
  /// of this host can read it. Before a space that is too small is replaced, waits until the ps
  /// tasks have taken the contribution in it.
  void make_spaces(std::span<const PlanBinding::Use> uses);
  /// Accepts a contribution that lies whole in the variable's space, and keeps the ids of its rows.
  /// Throws kInvalidArgument unless the ids ascend.
  void take(VariableId variable, const Contribution& contribution);
  /// Sends the contribution that take() has accepted. Nobody may change it until the ps has taken
  /// it. If `renew_copy` is true, a ps that shares memory also renews this worker's copy of the
  /// values. Never blocks.
  void send(VariableId variable, std::uint64_t step, bool renew_copy);

 private:
  std::vector<const PlanBinding::Use*> uses_without_space(std::span<const PlanBinding::Use> uses);
  std::shared_ptr<SharedMemory> share_memory(std::size_t bytes);
  void keep_errors(VariableId variable) const;
  void send_dense(const Piece& piece, ContributionBuffer& space);
  void send_rows(const Piece& piece, ContributionBuffer& space);
  std::span<const std::byte> as_it_travels(const ContributionForm& form, ContributionBuffer& space,
                                           Cut part, float* errors) const;
  ContributionRoute route(const Piece& piece, const ContributionBuffer& space) const;
  void take_row_errors(std::span<const std::int32_t> ids, ContributionBuffer& space,
                       std::size_t row);
  void put_row_errors(std::span<const std::int32_t> ids, ContributionBuffer& space,
                      std::size_t row) const;
  template <typename Payload>
  void send_frames(const Piece& piece, const ContributionRoute& route, ContributionBuffer& space,
                   std::size_t begin, std::span<const std::int32_t> ids, Payload&& payload_of);

  WorkerContext& context_;
  WorkerState& core_;
  std::vector<float> row_errors_;  // of the rows that are sent now
  std::uint64_t step_ = 0;
  bool renew_copy_ = false;
};

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

// Returns the uses that need a larger space. First waits until the ps tasks have taken every
// contribution in the old spaces, which were made for a smaller plan.
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

// Returns null when no ps of this host shares memory, or when this worker has shared too much
// already.
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

// Makes the array of rounding errors if the variable has none yet, so that the errors survive when
// another plan begins.
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

// Returns the bytes that travel for a part of the contribution. Rounds the numbers where they lie,
// or, with --top-k, writes the largest of them to space.largest.
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

// The variable keeps an error for each element of all its rows. The errors of the rows that are
// sent are copied here, one row after another.
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

// A frame's offset counts the bytes of the float32 numbers, although payload_of may return fewer
// bytes for them.
//
// A ps answers after it has taken the contribution from shared memory. So when the answer arrives,
// the space is free, and the mapped values are new.
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

// The steps of one plan on a worker's store.

class PsSteps : public StoreSteps {
 public:
  /// Throws kInvalidArgument when the plan updates a variable that is not trained. In rounds the
  /// store clips by `clip_norm`; otherwise the plan clips, if `clip_norm` is above 0.
  PsSteps(WorkerContext& context, const PlanBinding& plan, float clip_norm);

  NormBy norm_by() const override { return in_rounds() ? NormBy::kStore : NormBy::kPlan; }
  bool wants_next_rows() const override;
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& scalars) override;
  AsyncView need(VariableId variable) override;
  AsyncView place(VariableId variable) override;
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override;
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override;

 private:
  class Handle : public StepHandle {
   public:
    explicit Handle(WorkerContext& context) : context_(context) {}
    void wait_for(std::int64_t steps) { steps_ = steps; }
    std::int64_t global_step() override;

   private:
    WorkerContext& context_;
    std::int64_t steps_ = 0;
  };

  /// Where kernels read a value in the memory of a ps. kInPlace: where the value itself lies.
  /// kInCopy: in a copy that the ps makes for this worker, because several kernels of the step read
  /// the value while others change it.
  enum class MappedRead : std::uint8_t { kInPlace, kInCopy };

  void check(const PlanBinding::Use& use);
  MappedRead read_of(const PlanBinding::Use& use) const;
  /// True when the step reads the variable in memory of its ps.
  bool reads_in_place(VariableId variable) const;
  ValueUse use_of(const PlanBinding::Use& use) const;
  bool must_pull(const PlanBinding::Use& use, StepKind kind) const;
  void pull_stale(StepKind kind);
  template <typename Asks>
  void send_pulls(std::uint16_t flags, Asks&& asks);
  bool reads(VariableId variable, MappedRead how) const {
    return reads_in_place(variable) && reads_[std::size_t(variable)] == how;
  }
  void pull_rows(std::span<const RowSet> rows);
  void wait_for_values(VariableId variable);
  const std::byte* copy_by_ps(VariableId variable);
  void send_order();
  template <typename F>
  void for_pieces_on(const PsConnection& ps, F&& function) const;
  void forget_values();
  bool reads_now(std::span<const RowSet> rows) const;
  bool was_brought(const PlanBinding::Use& use, std::span<const RowSet> rows) const;
  void send_step_begin(const StepScalars& scalars, bool reads_now);
  void send_contribution(VariableId variable);
  void send_kept(float clip_scale);
  void send_step_end(PsConnection& ps, float clip_scale, std::span<const RowSet> next_rows);
  void send_read_done();
  void check_use(VariableId variable, const char* call) const;
  PsConnection& connection(const Piece& piece) const {
    return *context_.connections[std::size_t(piece.ps)];
  }

  /// True when contributions are kept until the plan knows the factor by which it clips them. A ps
  /// that knows the factor applies each chunk when it arrives, and answers at once, so values
  /// return while other chunks leave.
  bool keeps_contributions() const { return clipped_ && !in_rounds(); }
  bool in_rounds() const { return core_.options().aggregation.kind == AggregationKind::kRounds; }

  WorkerContext& context_;
  WorkerState& core_;
  const std::vector<PlanBinding::Use> uses_;
  const bool clipped_;
  std::vector<std::optional<MappedRead>> reads_;  // by variable; nullopt: the plan does not use it
  std::vector<bool> contributed_;                 // by variable
  std::vector<VariableId> kept_;                  // contributions that are not sent yet
  FetchAhead ahead_;
  ContributionSender sender_;
  // These members keep their memory from step to step.
  StepBegin begin_;
  std::vector<StepEnd> ends_;  // by ps
  RowsAhead next_rows_;
  StepKind kind_ = StepKind::kTrain;
  bool fetched_ = false;    // a fetch step was made since the last train step
  std::uint64_t step_ = 0;  // the step's number on the wire, which counts this store's train steps
  Handle handle_;
};

PsSteps::PsSteps(WorkerContext& context, const PlanBinding& plan, float clip_norm)
    : context_(context),
      core_(context.core),
      uses_(plan.uses),
      clipped_(clip_norm > 0),
      reads_(core_.variables().size()),
      contributed_(core_.variables().size(), false),
      ahead_(context),
      sender_(context),
      begin_{.clipped = clipped_,
             .clip_norm = in_rounds() && std::isfinite(clip_norm) ? clip_norm : 0,
             .learning_rates = {}},
      ends_(context.connections.size()),
      handle_(context) {
  for (const PlanBinding::Use& use : uses_) check(use);
  sender_.make_spaces(uses_);
}

void PsSteps::check(const PlanBinding::Use& use) {
  PACELINE_CHECK(use.variable >= 0 && std::size_t(use.variable) < reads_.size());
  const VariableSpec& variable = core_.variables()[std::size_t(use.variable)];
  reads_[std::size_t(use.variable)] = read_of(use);
  if (variable.sparse) next_rows_.add(use.variable);
  if (use.updated && !variable.trained) {
    throw Error(ErrorCode::kInvalidArgument,
                "[store] a plan updates the frozen variable " + variable.name);
  }
}

PsSteps::MappedRead PsSteps::read_of(const PlanBinding::Use& use) const {
  const VariableSpec& variable = core_.variables()[std::size_t(use.variable)];
  const bool changes = variable.trained || core_.changes_after_reads(use.variable);
  // In rounds, no value changes while a worker makes a contribution that is in time. So other
  // workers' updates disturb a step only outside rounds, or when late contributions count.
  const AggregationSpec& how = core_.options().aggregation;
  const bool late_count = !in_rounds() || how.late == LateContribution::kFold;
  const bool others_contribute = core_.options().spec.workers.size() > 1 && late_count;
  return use.reread && changes && others_contribute ? MappedRead::kInCopy : MappedRead::kInPlace;
}

bool PsSteps::wants_next_rows() const {
  return next_rows_.any([this](VariableId rows) { return core_.mapped(rows) == nullptr; });
}

void PsSteps::check_use(VariableId variable, const char* call) const {
  if (variable < 0 || std::size_t(variable) >= reads_.size() || !reads_[std::size_t(variable)]) {
    throw Error(
        ErrorCode::kInternal,
        fmt::format("[store] {} of variable {}, which the plan does not use", call, variable));
  }
}

void PsSteps::begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& scalars) {
  core_.check();
  context_.driver.wait_initialised();
  kind_ = kind;
  send_order();
  if (kind == StepKind::kTrain) {
    bool outdated = false;
    step_ = context_.driver.begin_step(outdated);
    if (outdated) forget_values();
    send_step_begin(scalars, reads_now(rows) && !fetched_);
  }
  fetched_ = kind == StepKind::kFetch || (fetched_ && kind == StepKind::kEvaluate);
  pull_stale(kind);
  if (kind != StepKind::kEvaluate) pull_rows(rows);
  ++context_.uses;
}

template <typename F>
void PsSteps::for_pieces_on(const PsConnection& ps, F&& function) const {
  for (const PlanBinding::Use& use : uses_) {
    for (const Piece& piece : core_.pieces_of(use.variable)) {
      if (piece.ps == ps.ps()) function(use, piece);
    }
  }
}

// Sends the ps tasks the order in which this plan needs the pieces, unless they already have this
// plan's order.
void PsSteps::send_order() {
  if (std::exchange(context_.ordered_by, this) == this) return;
  for (const auto& ps : context_.connections) {
    ControlBuffers::Buffer& buffer = ps->control().take();
    WireWriter writer(buffer.bytes);
    for_pieces_on(*ps, [&](const PlanBinding::Use&, const Piece& piece) { writer.put(piece.id); });
    ps->send_control(MessageType::kOrder, {}, buffer);
  }
}

// Forgets the values that the last answers brought. Other workers have made steps since then, so
// these values are older than the bound on staleness allows.
void PsSteps::forget_values() {
  std::ranges::fill(context_.held, Freshness::kNothing);
  ++context_.uses;
}

// True when the answers to the last train step brought none of the step's values, so that the step
// reads all of them now.
bool PsSteps::reads_now(std::span<const RowSet> rows) const {
  return std::ranges::none_of(uses_,
                              [&](const PlanBinding::Use& use) { return was_brought(use, rows); });
}

// True when the answers to the last train step brought the value.
bool PsSteps::was_brought(const PlanBinding::Use& use, std::span<const RowSet> rows) const {
  const ValueUse how = use_of(use);
  const Freshness held = context_.held[std::size_t(use.variable)];
  if (!how.trained) return false;
  if (how.in_place) return how.in_copy && !must_renew_copy(StepKind::kTrain, held, how);
  if (!how.sparse) return !paceline::must_pull(StepKind::kTrain, held, how);
  const auto asked = std::ranges::find(rows, use.variable, &RowSet::variable);
  return asked == rows.end() || next_rows_.on_their_way(*asked, context_.uses);
}

void PsSteps::send_step_begin(const StepScalars& scalars, bool reads_now) {
  PACELINE_CHECK(scalars.learning_rates.size() == core_.variables().size());
  std::fill(contributed_.begin(), contributed_.end(), false);
  kept_.clear();
  begin_.examples = scalars.examples;
  begin_.round = in_rounds() ? core_.global_step.load() : 0;
  begin_.learning_rates.assign(scalars.learning_rates.begin(), scalars.learning_rates.end());
  const bool finite = core_.options().on_nan == OnNan::kStop;
  const auto flags = std::uint16_t((reads_now ? kReadsNow : 0) | (finite ? kMustBeFinite : 0));
  for (const auto& ps : context_.connections) {
    ControlBuffers::Buffer& buffer = ps->control().take();
    encode(begin_, buffer.bytes);
    ps->send_control(MessageType::kStepBegin, {.flags = flags, .step = step_}, buffer);
  }
}

// An evaluation never reads in place, since the store has already read the values for it.
bool PsSteps::reads_in_place(VariableId variable) const {
  return kind_ != StepKind::kEvaluate && core_.mapped(variable) != nullptr;
}

ValueUse PsSteps::use_of(const PlanBinding::Use& use) const {
  const VariableSpec& variable = core_.variables()[std::size_t(use.variable)];
  return {.in_place = reads_in_place(use.variable),
          .in_copy = reads(use.variable, MappedRead::kInCopy),
          .sparse = variable.sparse,
          .trained = variable.trained,
          .updated = use.updated};
}

bool PsSteps::must_pull(const PlanBinding::Use& use, StepKind kind) const {
  const ValueUse how = use_of(use);
  if (kind == StepKind::kFetch && !how.in_place && !how.sparse) {
    return ahead_.must_pull(use.variable);
  }
  return paceline::must_pull(kind, context_.held[std::size_t(use.variable)], how);
}

template <typename Asks>
void PsSteps::send_pulls(std::uint16_t flags, Asks&& asks) {
  for (const auto& ps : context_.connections) {
    ControlBuffers::Buffer* buffer = nullptr;
    for_pieces_on(*ps, [&](const PlanBinding::Use& use, const Piece& piece) {
      if (!asks(use, piece)) return;
      if (buffer == nullptr) WireWriter((buffer = &ps->control().take())->bytes);
      WireWriter(buffer->bytes, WireWriter::kAppend).put(piece.id);
    });
    if (buffer != nullptr) {
      ps->send_control(MessageType::kPull, {.flags = flags, .step = step_}, *buffer);
    }
  }
}

void PsSteps::pull_stale(StepKind kind) {
  const std::uint16_t flags = kind == StepKind::kFetch ? kTellChanges : 0;
  send_pulls(flags, [&](const PlanBinding::Use& use, const Piece& piece) {
    if (!must_pull(use, kind)) return false;
    if (kind == StepKind::kFetch) ahead_.note_pulled(use.variable);
    core_.allocate(use.variable);
    core_.pulled(use.variable).forget_next();
    core_.expect(piece, core_.bytes_of(piece));
    return true;
  });
  send_pulls(kIntoCopy, [&](const PlanBinding::Use& use, const Piece& piece) {
    const Freshness held = context_.held[std::size_t(use.variable)];
    if (!must_renew_copy(kind, held, use_of(use))) return false;
    core_.expect(piece, 1);
    return true;
  });
  for (const PlanBinding::Use& use : uses_) {
    context_.held[std::size_t(use.variable)] = freshness_after(kind, use_of(use));
  }
}

void PsSteps::pull_rows(std::span<const RowSet> rows) {
  for (const RowSet& set : rows) {
    check_use(set.variable, "rows");
    if (reads_in_place(set.variable) || next_rows_.on_their_way(set, context_.uses)) continue;
    core_.allocate(set.variable);
    for (const Piece& piece : core_.pieces_of(set.variable)) {
      const std::span<const std::int32_t> ids = rows_in(piece, set.ids);
      if (ids.empty()) continue;
      PsConnection& ps = connection(piece);
      ControlBuffers::Buffer& buffer = ps.control().take();
      WireWriter(buffer.bytes).put_all(ids);
      core_.expect(piece, ids.size() * core_.row_bytes(set.variable));
      ps.send_control(MessageType::kPullRows, {.id = piece.id, .step = step_}, buffer);
    }
  }
}

void PsSteps::wait_for_values(VariableId variable) {
  const auto come = [&] {
    return core_.missing(variable) == nullptr &&
           !(kind_ == StepKind::kFetch && ahead_.waits(variable));
  };
  if (core_.wait_for_reply(come)) return;
  const Piece* const missing = core_.missing(variable);
  const Piece& piece = missing == nullptr ? core_.pieces_of(variable).front() : *missing;
  core_.fail_late("no values of " + core_.variables()[std::size_t(variable)].name + " came",
                  "from " + context_.connection(piece).text());
}

// The copy exists by now, unless a ps task has made an error.
const std::byte* PsSteps::copy_by_ps(VariableId variable) {
  const std::byte* const copy = core_.copies().variable(variable);
  if (copy == nullptr) {
    core_.fail(Error(ErrorCode::kDataLoss,
                     fmt::format("[store] the copy of {} is in memory that was not shared",
                                 core_.variables()[std::size_t(variable)].name)));
    core_.check();
  }
  return copy;
}

AsyncView PsSteps::need(VariableId variable) {
  check_use(variable, "need");
  wait_for_values(variable);
  const VariableSpec& spec = core_.variables()[std::size_t(variable)];
  if (!reads_in_place(variable)) {
    core_.allocate(variable);
    if (kind_ == StepKind::kFetch) ahead_.go_on(variable);
    return core_.value(variable).view();
  }
  // Kernels only read mapped memory: a variable changes only by contributions.
  const std::byte* const mapped =
      reads(variable, MappedRead::kInCopy) ? copy_by_ps(variable) : core_.mapped(variable);
  return TensorView{const_cast<std::byte*>(mapped), spec.dtype, spec.shape};
}

AsyncView PsSteps::place(VariableId variable) {
  check_use(variable, "place");
  ContributionBuffer& space = core_.space(variable);
  context_.wait_until_taken(variable);
  return space.values;
}

void PsSteps::ready(VariableId variable, const Contribution& contribution, const Event& event) {
  check_use(variable, "ready");
  contributed_[std::size_t(variable)] = true;
  wait_on_host(event);
  sender_.take(variable, contribution);
  if (keeps_contributions()) return kept_.push_back(variable);
  send_contribution(variable);
}

void PsSteps::send_contribution(VariableId variable) {
  sender_.send(variable, step_, reads(variable, MappedRead::kInCopy));
}

// A skipped step has no clip factor to send.
void PsSteps::send_kept(float clip_scale) {
  if (!keeps_contributions()) return;
  for (const auto& ps : context_.connections) {
    if (is_skipped(clip_scale)) break;
    ControlBuffers::Buffer& buffer = ps->control().take();
    encode(StepClip{clip_scale}, buffer.bytes);
    ps->send_control(MessageType::kClip, {.step = step_}, buffer);
  }
  for (const VariableId variable : kept_) send_contribution(variable);
  kept_.clear();
}

StepHandle& PsSteps::end_step(float clip_scale, std::span<const RowSet> next_rows) {
  core_.check();
  if (kind_ == StepKind::kTrain) {
    context_.driver.end_step();
    if (is_skipped(clip_scale)) ++context_.skipped;
    send_kept(clip_scale);
    if (core_.options().aggregation.outdates_answers()) next_rows = {};
    for (const auto& ps : context_.connections) send_step_end(*ps, clip_scale, next_rows);
    handle_.wait_for(core_.steps_sent);
    next_rows_.ended(++context_.uses, next_rows);
  } else if (kind_ == StepKind::kFetch) {
    send_read_done();
  }
  return handle_;
}

// Tells the ps tasks that this step has read its values, but only for values in shared memory: a ps
// that sends a value in a frame knows that it is read.
void PsSteps::send_read_done() {
  for (const PlanBinding::Use& use : uses_) {
    if (!core_.changes_after_reads(use.variable)) continue;
    if (!reads_in_place(use.variable)) continue;
    for (const Piece& piece : core_.pieces_of(use.variable)) {
      connection(piece).send(MessageType::kReadDone, {.id = piece.id}, {}, nullptr, nullptr);
    }
  }
}

void PsSteps::send_step_end(PsConnection& ps, float clip_scale, std::span<const RowSet> next_rows) {
  StepEnd& end = ends_[std::size_t(ps.ps())];
  end.clip_scale = keeps_contributions() || is_skipped(clip_scale) ? clip_scale : 1.0f;
  std::size_t count = 0;
  for_pieces_on(ps, [&](const PlanBinding::Use&, const Piece& piece) {
    if (count == end.entries.size()) end.entries.emplace_back();
    StepEnd::Entry& entry = end.entries[count++];
    entry.piece = piece.id;
    entry.contributed = contributed_[std::size_t(piece.variable)];
    entry.next_rows.clear();
    if (!reads_in_place(piece.variable)) {
      const auto ids = rows_in(piece, ids_of(next_rows, piece.variable));
      entry.next_rows.assign(ids.begin(), ids.end());
    }
    core_.expect(piece, entry.next_rows.size() * core_.row_bytes(piece.variable));
  });
  ControlBuffers::Buffer& buffer = ps.control().take();
  encode(end, buffer.bytes);
  ps.send_control(MessageType::kStepEnd, {.step = step_}, buffer);
}

std::int64_t PsSteps::Handle::global_step() {
  WorkerState& core = context_.core;
  if (core.options().aggregation.kind == AggregationKind::kRounds) {
    context_.driver.wait_for_rounds(steps_);
  }
  if (!core.wait_for_reply([&] { return core.steps_done >= steps_; })) {
    throw Error(ErrorCode::kDeadlineExceeded,
                "no global step from " + context_.connections.front()->text());
  }
  return core.global_step;
}

// A worker's side of the fence between rounds: the workers commit rounds among themselves, and the
// ps tasks apply the committed rounds.

class PsRoundFence : public RoundFence {
 public:
  explicit PsRoundFence(WorkerContext& context) : context_(context) {}

  void begin(std::int64_t round) override;
  void wait_given() override;
  float commit(std::span<const std::int32_t> contributors, std::optional<double> squares) override;
  void lose(std::int64_t round) override;
  void wait_closed() override;
  void begin_again(const std::string& why, std::vector<std::int32_t> unreached) override {
    context_.driver.begin_again(why, {std::move(unreached)});
  }
  void check() const override;
  bool is_cut_off() const override;
  std::uint64_t ps_incarnation() const override;

 private:
  template <typename Predicate>
  void wait_for_ps(const char* what, Predicate&& come);
  bool is_done() const;
  bool lets_others_tell() const;
  template <typename Predicate>
  void tell_commit(Predicate&& known);
  [[noreturn]] void others_went_on(std::int64_t round) const;

  WorkerContext& context_;
  std::int64_t round_ = 0;                  // the round of the last step that was begun
  bool settled_ = false;                    // all values of the last answers belong to one round
  std::optional<std::uint64_t> committed_;  // the contributors of the last step, if it counts
  // A commit that the ps tasks have not been told, since the other members are to tell it first.
  std::optional<CommittedRound> untold_;
};

// How long the other members may take to tell a commit first. They need a fraction of this time,
// unless they are lost.
constexpr Duration kOthersTellWithin = std::chrono::milliseconds(100);

// Waits as long as one reply may take: no ps waits for another worker before it answers.
template <typename Predicate>
void PsRoundFence::wait_for_ps(const char* what, Predicate&& come) {
  WorkerState& core = context_.core;
  std::optional<AccountScope> scope;
  if (core.options().account != nullptr) scope.emplace(*core.options().account, Activity::kWait);
  if (core.wait_for_reply(come)) return;
  core.fail_late(fmt::format("{} of round {} did not come", what, round_), "from the ps tasks");
}

bool PsRoundFence::is_done() const { return context_.core.steps_done >= context_.core.steps_sent; }

void PsRoundFence::others_went_on(std::int64_t round) const {
  throw LeftBehind(
      fmt::format("the others went on without worker:{}: the ps tasks have closed {} rounds, and "
                  "its own group {}",
                  context_.core.options().task.index, context_.core.global_step.load(), round));
}

void PsRoundFence::begin(std::int64_t round) {
  wait_closed();
  round_ = round;
  WorkerState& core = context_.core;
  if (!settled_ || core.global_step < round) {
    context_.driver.await_round(round);
    wait_for_ps("the end", [&] { return core.round_is_open.load(); });
    std::ranges::fill(context_.held, Freshness::kNothing);
    ++context_.uses;
  }
  if (core.global_step != round) others_went_on(round);
  settled_ = true;
}

bool PsRoundFence::lets_others_tell() const {
  return untold_->contributors.size() > 1 &&
         untold_->contributors.front() == context_.core.options().task.index;
}

// Tells the ps tasks that this worker has committed the round, but first gives the other members
// time to tell them.
//
// The reason: the member that commits first may be lost before the others hear of its commit. The
// others then make the step again without the lost member, and the ps tasks must not have heard of
// a commit that the others do not know. After kOthersTellWithin this worker tells the commit in any
// case, since the others may have closed the round meanwhile.
template <typename Predicate>
void PsRoundFence::tell_commit(Predicate&& known) {
  if (!untold_) return;
  if (lets_others_tell()) context_.core.wait(Deadline::after(kOthersTellWithin), known);
  context_.driver.commit(*untold_);
  untold_.reset();
}

// Waits until the contribution is on every ps, which ps 0 confirms (kGiven). If a ps drops a late
// contribution, no kGiven arrives, but the step is done at once.
void PsRoundFence::wait_given() {
  committed_.reset();
  wait_for_ps("the receipt", [this] {
    return context_.core.steps_given >= context_.core.steps_sent || is_done();
  });
}

float PsRoundFence::commit(std::span<const std::int32_t> contributors,
                           std::optional<double> squares) {
  committed_ = fingerprint_of(contributors);
  WorkerState& core = context_.core;
  untold_ = {.round = round_,
             .contributors = {contributors.begin(), contributors.end()},
             .squares = squares.value_or(0)};
  if (!lets_others_tell()) tell_commit([] { return false; });  // no other member tells it
  if (!squares) return 1;
  const auto has_scale = [&] { return core.scaled_round == round_ || is_done(); };
  tell_commit(has_scale);
  wait_for_ps("the norm", has_scale);
  if (core.scaled_round != round_) others_went_on(round_ + 1);
  return core.scale;
}

// Withdraws the step, unless the other members have committed its round without this worker. In
// that case the step ends by what the others tell the ps tasks.
void PsRoundFence::lose(std::int64_t round) {
  settled_ = false;
  if (round <= round_) context_.driver.withdraw(context_.core.steps_sent - 1);
  wait_for_ps("the end", [this] { return is_done(); });
}

void PsRoundFence::wait_closed() {
  tell_commit([this] { return is_done(); });
  if (!is_done()) wait_for_ps("the end", [this] { return is_done(); });
  if (committed_ && *committed_ != context_.core.last_contributors) others_went_on(round_ + 1);
}

void PsRoundFence::check() const { context_.core.check(); }

bool PsRoundFence::is_cut_off() const { return context_.core.cut_off > 0; }

std::uint64_t PsRoundFence::ps_incarnation() const { return context_.driver.ps_incarnation(); }

// The chief's part of a checkpoint of parameter servers.

/// Every ps that sees the folder writes its own shard, in parallel. The chief writes the shards of
/// the other ps tasks from what they send. Core and connections must outlive this object.
class CheckpointClient : public StoreSaving {
 public:
  CheckpointClient(WorkerState& core, std::vector<std::unique_ptr<PsConnection>>& connections)
      : core_(core), connections_(connections) {}

  std::vector<std::string> prepare_saving(const std::string& folder) override;
  void mark() override;
  SavedShards write_shards(const std::string& folder) override;

 private:
  void send(PsConnection& ps, MessageType type, std::span<const std::byte> payload,
            FrameHeader header = {});
  void check_files_are_found(const std::string& path, const std::string& content);
  int shard_count() const;
  std::string shard_path(const std::string& folder, std::size_t ps) const;
  void wait_saved(std::size_t ps);
  WrittenFile write_here(const std::string& path, std::size_t ps);
  std::span<const std::byte> fetch(const Piece& piece, std::size_t array, std::size_t offset,
                                   std::size_t bytes);
  template <typename Predicate>
  auto saving_wait(Predicate& come) {
    return [&](Deadline deadline) { return core_.save_inbox().wait(deadline, come); };
  }
  void add_other_workers(SavedShards& shards, const SavedShard& counts);

  WorkerState& core_;
  std::vector<std::unique_ptr<PsConnection>>& connections_;
  std::vector<bool> sees_;  // by ps: it sees the folder
  std::vector<std::byte> fetched_;
  std::uint64_t save_ = 0;
};

namespace fs = std::filesystem;

// How long the chief waits for the workers' states. A worker tells its state only between two of
// its steps, and a step with a validation may take longer than this.
constexpr Duration kWaitForStates = std::chrono::seconds(5);

/// A file whose content no other file has. The file exists as long as this object.
class TokenFile {
 public:
  explicit TokenFile(const std::string& folder) {
    std::uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number)) number = 1;
    content = fmt::format("{:016x}", number);
    path = fmt::format("{}/step-seen-by-all-{}.part", fs::canonical(folder).string(), content);
    std::ofstream(path, std::ios::binary) << content;
  }
  ~TokenFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::string path, content;
};

// Uses the connection's buffers for saving, since its other buffers belong to the step thread.
void CheckpointClient::send(PsConnection& ps, MessageType type, std::span<const std::byte> payload,
                            FrameHeader header) {
  ControlBuffers::Buffer& buffer = ps.saving_control().take();
  buffer.bytes.assign(payload.begin(), payload.end());
  header.step = save_;
  ps.send_control(type, header, buffer);
}

std::vector<std::string> CheckpointClient::prepare_saving(const std::string& folder) {
  const TokenFile token(folder);
  check_files_are_found(token.path, token.content);
  std::vector<std::string> lines;
  const auto found = core_.save_inbox().found();
  for (std::size_t ps = 0; ps < found.size(); ++ps) {
    sees_.push_back(*found[ps]);
    if (sees_.back()) continue;
    lines.push_back(fmt::format("{} does not see {}: what it has to save is sent to this task",
                                connections_[ps]->name(), folder));
  }
  return lines;
}

void CheckpointClient::check_files_are_found(const std::string& path, const std::string& content) {
  for (const auto& ps : connections_) {
    send(*ps, MessageType::kFindFile, encode(FindFile{path, content}));
  }
  const auto answered = [&] {
    core_.check();
    return std::ranges::all_of(core_.save_inbox().found(),
                               [](const auto& found) { return found.has_value(); });
  };
  if (core_.wait_patiently(saving_wait(answered))) return;
  throw Error(ErrorCode::kDeadlineExceeded, "a ps does not say whether it sees --out");
}

// If the workers commit rounds, there is one more shard: the variables that the workers keep
// themselves.
int CheckpointClient::shard_count() const {
  return int(connections_.size()) + (core_.options().aggregation.workers_commit ? 1 : 0);
}

void CheckpointClient::mark() {
  core_.save_inbox().begin(++save_);
  for (const auto& ps : connections_) {
    ps->send_control(MessageType::kMark, {.step = save_}, ps->control().take_empty());
  }
}

std::string CheckpointClient::shard_path(const std::string& folder, std::size_t ps) const {
  return fs::canonical(folder).string() + "/" + shard_name(int(ps), shard_count());
}

SavedShards CheckpointClient::write_shards(const std::string& folder) {
  for (std::size_t ps = 0; ps < connections_.size(); ++ps) {
    send(*connections_[ps], MessageType::kSaveShard,
         encode_text(sees_[ps] ? shard_path(folder, ps) : ""));
  }
  SavedShards shards;
  shards.variables = saved_variables(core_.variables(), core_.pieces(), shard_count());
  for (std::size_t ps = 0; ps < connections_.size(); ++ps) {
    wait_saved(ps);
    const SavedShard saved = *core_.save_inbox().saved()[ps];
    shards.files.push_back(
        sees_[ps] ? WrittenFile{shard_name(int(ps), shard_count()), saved.bytes, saved.checksum}
                  : write_here(shard_path(folder, ps), ps));
  }
  const SavedShard counts = *core_.save_inbox().saved()[0];
  shards.global_step = counts.global_step;
  if (!counts.unused.empty()) shards.unused = RecordSet(counts.unused);
  add_other_workers(shards, counts);
  return shards;
}

// Waits without a limit, since a disk may be slow. If a ps is lost, the store's error ends the
// wait.
void CheckpointClient::wait_saved(std::size_t ps) {
  const auto answered = [&] {
    core_.check();
    return core_.save_inbox().saved()[ps].has_value();
  };
  while (!core_.save_inbox().wait(core_.reply_deadline(), answered)) {
  }
  const std::string error = core_.save_inbox().saved()[ps]->error;
  if (error.empty()) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("{}: {}", connections_[ps]->name(), error));
}

WrittenFile CheckpointClient::write_here(const std::string& path, std::size_t ps) {
  return write_shard(path, core_.variables(), core_.pieces(), int(ps), shard_count(),
                     [this](const Piece& piece, std::size_t array, std::size_t offset,
                            std::size_t bytes) { return fetch(piece, array, offset, bytes); });
}

std::span<const std::byte> CheckpointClient::fetch(const Piece& piece, std::size_t array,
                                                   std::size_t offset, std::size_t bytes) {
  fetched_.resize(bytes);
  core_.save_inbox().expect(piece.id, std::uint16_t(array), offset, fetched_);
  send(*connections_[std::size_t(piece.ps)], MessageType::kReadMarked,
       encode_number(std::int64_t(bytes)),
       {.flags = std::uint16_t(array), .id = piece.id, .offset = offset});
  const auto come = [&] {
    core_.check();
    return core_.save_inbox().missing() == 0;
  };
  if (!core_.wait_patiently(saving_wait(come))) {
    throw Error(ErrorCode::kDeadlineExceeded,
                connections_[std::size_t(piece.ps)]->name() + " does not send what is to be saved");
  }
  return fetched_;
}

// If a worker does not tell its state, its place in the data stays unknown, but `counts` has the
// number of its applied steps.
void CheckpointClient::add_other_workers(SavedShards& shards, const SavedShard& counts) {
  const auto knows = [&](std::size_t worker) {
    return std::ranges::find(shards.others, int(worker), &TaskState::worker) != shards.others.end();
  };
  const auto told = [&] {
    core_.check();
    shards.others = core_.save_inbox().states();
    for (std::size_t worker = 1; worker < counts.workers.size(); ++worker) {
      if (counts.workers[worker].asked && !knows(worker)) return false;
    }
    return true;
  };
  core_.save_inbox().wait(Deadline::after(kWaitForStates), told);
  for (std::size_t worker = 1; worker < counts.workers.size(); ++worker) {
    if (knows(worker)) continue;
    TaskState& state = shards.others.emplace_back();
    state.worker = int(worker);
    state.step = counts.workers[worker].applied;
    if (!counts.workers[worker].asked) continue;
    shards.lines.push_back(fmt::format(
        "worker:{} did not say within {} s where it is: its place in its data and its local "
        "variables are not in this checkpoint",
        worker, std::chrono::duration_cast<std::chrono::seconds>(kWaitForStates).count()));
  }
}

// The time in which the last frames of a leaving worker must be sent.
constexpr Duration kGoodbyeTimeout = std::chrono::seconds(5);

LinkOptions link_options(const PsStoreOptions& options) {
  LinkOptions link;
  link.security = load_security(options.security);
  link.refused = options.say;
  return link;
}

class PsStoreImpl : public PsStore {
 public:
  PsStoreImpl(const PsStoreOptions& options, std::vector<VariableSpec> variables)
      : options_(options),
        core_(std::move(variables), options_),
        driver_(options_, core_),
        steps_{.core = core_,
               .connections = connections_,
               .driver = driver_,
               .held = std::vector<Freshness>(core_.variables().size(), Freshness::kNothing)},
        link_(make()) {
    core_.set_link(link_.get(), link_options_.spin);
    join_all();
  }

  std::span<const VariableSpec> variables() const override { return core_.variables(); }
  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override {
    return std::make_unique<PsSteps>(steps_, plan, clip_norm);
  }
  void write(std::vector<VariableState> states, std::int64_t global_step) override;
  bool initialised() const override { return driver_.initialised(); }
  std::vector<VariableState> read(std::span<const VariableId> variables) override;
  std::int64_t global_step() const override { return core_.global_step; }
  StoreAccount account() const override;
  std::vector<StoreLink> links() const override;
  Staleness staleness() const override { return driver_.staleness(); }
  std::int64_t skipped() const override { return steps_.skipped; }

  void wait_initialised() override { driver_.wait_initialised(); }
  bool rounds() const override {
    return std::ranges::any_of(connections_, [](const auto& ps) { return !ps->wire().exact(); });
  }
  std::string placement_text() const override {
    return paceline::placement_text(core_.variables(), core_.pieces());
  }

  bool all_warm() const override { return core_.all_warm; }
  bool all_done() const override { return core_.all_done; }
  bool any_done() const override { return core_.any_done; }
  void set_done() override { driver_.set_done(); }
  void end_training() override { driver_.end_training(); }
  bool training_ended() const override { return core_.training_ended; }
  bool wait_all_done(Deadline deadline) override {
    return core_.wait(deadline, [&] { return core_.all_done.load(); });
  }
  void goodbye() override;

  bool was_initialised() const override { return driver_.was_initialised(); }
  void restore(std::span<const TaskState> states) override;
  std::int64_t next_step() const override { return driver_.next_step(); }
  std::optional<TaskState> restored() const override { return driver_.restored(); }
  bool state_asked() const override { return core_.state_asked != 0; }
  bool others_save() const override { return true; }
  void send_state(const TaskState& state) override;
  void ask_progress() override {
    for (const auto& ps : connections_) ps->ask_progress();
  }
  bool stop_asked() const override { return core_.stop_asked; }
  std::shared_ptr<SharedRecordBlocks> records() const override { return driver_.records(); }

  RoundFence& round_fence() override { return fence_; }

  std::vector<std::string> prepare_saving(const std::string& folder) override {
    saving_ = std::make_unique<CheckpointClient>(core_, connections_);
    return saving_->prepare_saving(folder);
  }
  void mark() override { saving_->mark(); }
  SavedShards write_shards(const std::string& folder) override {
    return saving_->write_shards(folder);
  }

 private:
  std::unique_ptr<Link> make() const {
    if (options_.link_factory) return options_.link_factory(link_options_);
    return traced(make_link(options_.link, link_options_), options_.timeline);
  }
  void join_all();
  void write_piece(const Piece& piece, const VariableState& state);
  void write_array(const Piece& piece, std::size_t array, std::span<const std::byte> bytes);
  void check_state(const VariableState& state) const;
  void send_reads(std::span<const VariableId> variables);
  void wait_for_values_of_round(std::span<const VariableId> variables);
  const PsConnection& slowest(int written) const;

  const PsStoreOptions options_;
  const LinkOptions link_options_ = link_options(options_);
  WorkerState core_;
  WorkerDriver driver_;
  std::vector<std::unique_ptr<PsConnection>> connections_;  // by ps
  WorkerContext steps_;
  PsRoundFence fence_{steps_};
  std::unique_ptr<CheckpointClient> saving_;
  std::vector<VariableState> writing_;  // borrowed by frames until they are sent
  ContributionBuffer written_;          // counts those frames
  std::unique_ptr<Link> link_;
  /// Runs also when joining fails. Ends the link before the members above are destroyed, since the
  /// link's threads call these members, and frames that are being sent borrow from them.
  struct Shutdown {
    PsStoreImpl& store;
    ~Shutdown() {
      store.driver_.stop();
      store.link_.reset();
      for (const auto& ps : store.connections_) ps->abandon();
    }
  } shutdown_{*this};  // last
};

void PsStoreImpl::join_all() {
  if (options_.spec.ps.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[store] the cluster spec has no ps");
  }
  for (std::size_t i = 0; i < options_.spec.ps.size(); ++i) {
    connections_.push_back(
        std::make_unique<PsConnection>(core_, driver_, int(i), options_.spec.ps[i]));
  }
  driver_.use(*link_, connections_);
  driver_.join();
}

void PsStoreImpl::check_state(const VariableState& state) const {
  const VariableSpec& variable = core_.variables()[std::size_t(state.variable)];
  const std::vector<SlotSpec> slots = slots_of(variable);
  bool fits = state.value.dtype() == variable.dtype && state.value.shape() == variable.shape &&
              (state.slots.empty() || state.slots.size() == slots.size());
  for (std::size_t i = 0; fits && i < state.slots.size(); ++i) {
    fits = state.slots[i].elements() == (slots[i].scalar ? 1 : variable.shape.elements());
  }
  if (!fits) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[store] what is written to {} is not {} {} with {} slots", variable.name,
                    name_of(variable.dtype), variable.shape.str(), slots.size()));
  }
}

void PsStoreImpl::write_array(const Piece& piece, std::size_t array,
                              std::span<const std::byte> bytes) {
  for (const Cut cut : byte_cuts(bytes.size())) {
    ++written_.in_flight;
    connections_[std::size_t(piece.ps)]->send(
        MessageType::kWrite, {.flags = std::uint16_t(array), .id = piece.id, .offset = cut.begin},
        bytes.subspan(cut.begin, cut.size), &ContributionBuffer::sent, &written_);
  }
}

void PsStoreImpl::write_piece(const Piece& piece, const VariableState& state) {
  const std::vector<SlotSpec> slots = slots_of(core_.variables()[std::size_t(piece.variable)]);
  const std::size_t begin = std::size_t(piece.first_row) * core_.row_bytes(piece.variable);
  const auto rows = [&](const Tensor& tensor) {
    return std::span(static_cast<const std::byte*>(tensor.raw()) + begin, core_.bytes_of(piece));
  };
  write_array(piece, 0, rows(state.value));
  for (std::size_t i = 0; i < state.slots.size(); ++i) {
    const Tensor& slot = state.slots[i];
    write_array(piece, i + 1,
                slots[i].scalar ? std::as_bytes(slot.data<std::int64_t>()) : rows(slot));
  }
}

const PsConnection& PsStoreImpl::slowest(int written) const {
  for (const auto& ps : connections_) {
    if (driver_.written(ps->ps()) <= written) return *ps;
  }
  return *connections_.front();
}

void PsStoreImpl::write(std::vector<VariableState> states, std::int64_t global_step) {
  core_.check();
  for (const VariableState& state : states) check_state(state);
  const int before = driver_.written(0);
  writing_ = std::move(states);
  written_.wakeup = &core_.wakeup();
  for (const VariableState& state : writing_) {
    for (const Piece& piece : core_.pieces_of(state.variable)) write_piece(piece, state);
  }
  for (const auto& ps : connections_) {
    ps->send_small(MessageType::kWriteEnd, encode_number(global_step));
  }
  const auto left = [&] {
    return written_.in_flight + std::ranges::count_if(connections_, [&](const auto& ps) {
             return driver_.written(ps->ps()) <= before;
           });
  };
  if (!core_.wait_for_all(left)) {
    core_.fail_late("values were written and not confirmed", "by " + slowest(before).text());
  }
  writing_.clear();
  ++steps_.uses;
  std::fill(steps_.held.begin(), steps_.held.end(), Freshness::kNothing);
  wait_initialised();
}

void PsStoreImpl::send_reads(std::span<const VariableId> variables) {
  std::vector<std::vector<std::uint32_t>> ids(connections_.size());
  for (const VariableId variable : variables) {
    for (const Piece& piece : core_.pieces_of(variable)) {
      ids[std::size_t(piece.ps)].push_back(piece.id);
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].empty()) continue;
    connections_[i]->send_small(MessageType::kRead, std::as_bytes(std::span(ids[i])));
  }
}

// A ps sends the message that a round has ended before it sends the round's values. So the values
// may still be arriving in the memory that is read here.
void PsStoreImpl::wait_for_values_of_round(std::span<const VariableId> variables) {
  if (core_.options().aggregation.kind != AggregationKind::kRounds) return;
  const auto awaited = [&] {
    return std::ranges::count_if(
        variables, [&](VariableId variable) { return core_.missing(variable) != nullptr; });
  };
  if (!core_.wait_for_all(awaited)) {
    core_.fail_late("values of a round were not sent", "by a ps");
  }
}

// Reads values from the ps tasks. Later evaluate steps see these values, too.
std::vector<VariableState> PsStoreImpl::read(std::span<const VariableId> variables) {
  core_.check();
  wait_initialised();
  PendingRead& read = core_.start_read(variables);
  send_reads(variables);
  if (!core_.wait_for_all([&] { return read.missing(); })) {
    core_.fail_late("values that are read were not sent",
                    "by " + connections_[std::size_t(read.first_missing())]->text());
  }
  wait_for_values_of_round(variables);
  ++steps_.uses;
  std::vector<VariableState> states = read.take();
  for (const VariableState& state : states) {
    const Tensor& held = core_.value(state.variable);
    if (!held.defined()) continue;
    copy_bytes(held.raw(), state.value.raw(), held.bytes());
    steps_.held[std::size_t(state.variable)] = Freshness::kWhole;
  }
  return states;
}

void PsStoreImpl::restore(std::span<const TaskState> states) {
  for (const TaskState& state : states) {
    connections_.front()->send_task_state(state, 0);
  }
}

void PsStoreImpl::send_state(const TaskState& state) {
  connections_.front()->send_task_state(state, driver_.take_state_asked());
}

StoreAccount PsStoreImpl::account() const {
  StoreAccount account;
  for (const auto& ps : connections_) {
    const Traffic& traffic = ps->traffic();
    account.bytes_sent += traffic.bytes_sent;
    account.bytes_received += traffic.bytes_received;
    account.transfer += Duration(traffic.busy_ns);
  }
  return account;
}

std::vector<StoreLink> PsStoreImpl::links() const {
  std::vector<StoreLink> links;
  for (const auto& ps : connections_) links.push_back(ps->link());
  return links;
}

void PsStoreImpl::goodbye() {
  const Deadline deadline = Deadline::after(kGoodbyeTimeout);
  driver_.say_goodbye();
  const auto confirmed = [this](const auto& ps) {
    return ps->goodbye_confirmed() || driver_.has_closed(ps->ps());
  };
  try {
    core_.wait(deadline, [&] { return std::ranges::all_of(connections_, confirmed); });
    for (const auto& ps : connections_) ps->close(deadline);
    core_.wait(deadline, [&] { return driver_.all_closed(); });
  } catch (const Error&) {
    // A ps that was lost already needs no goodbye.
    for (const auto& ps : connections_) ps->close(deadline);
  }
}

}  // namespace

std::unique_ptr<PsStore> PsStore::join(const PsStoreOptions& options,
                                       std::vector<VariableSpec> variables) {
  return std::make_unique<PsStoreImpl>(options, std::move(variables));
}

}  // namespace paceline
