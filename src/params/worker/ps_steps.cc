#include "params/worker/ps_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/buffer.h"
#include "base/check.h"
#include "paceline/error.h"
#include "params/protocol/ask_ahead.h"
#include "params/protocol/frame_cuts.h"
#include "params/variable_arrays.h"
#include "params/wire/fields.h"
#include "params/wire/largest_numbers.h"
#include "params/wire/rounded_floats.h"

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

class PsSteps : public StoreSteps {
 public:
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

}  // namespace

std::unique_ptr<StoreSteps> make_ps_steps(WorkerContext& context, const PlanBinding& plan,
                                          float clip_norm) {
  return std::make_unique<PsSteps>(context, plan, clip_norm);
}

}  // namespace paceline
