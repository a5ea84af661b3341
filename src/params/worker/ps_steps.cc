// Contributions leave unscaled, as soon as they are ready, and a shard applies each chunk as it
// arrives. If the plan clips, the worker keeps them until it knows the norm, and sends the scale
// before them. Sparse rows are summed before the norm is taken. Shards send new values unasked;
// where a worker always waits before a step, as in ssp with a staleness of 0, it pulls them
// instead.
#include "params/worker/ps_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "params/wire/fields.h"

namespace paceline {
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
  if (core_.options().torn_free) return MappedRead::kCopiedInChunks;
  const VariableSpec& variable = core_.variables()[std::size_t(use.variable)];
  const bool changes = variable.trained || core_.changes_after_reads(use.variable);
  // In rounds nobody changes what a contribution in time is made from.
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
  if (kind == StepKind::kFetch) core_.look(ahead_.may_have_come(uses_));
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

// Once, unless plans take turns.
void PsSteps::send_order() {
  if (std::exchange(context_.ordered_by, this) == this) return;
  for (const auto& ps : context_.connections) {
    ControlBuffers::Buffer& buffer = ps->control().take();
    WireWriter writer(buffer.bytes);
    for_pieces_on(*ps, [&](const PlanBinding::Use&, const Piece& piece) { writer.put(piece.id); });
    ps->send_control(MessageType::kOrder, {}, buffer);
  }
}

// Others have made steps since this worker's last one ended: what its answers brought is too old
// for the bound.
void PsSteps::forget_values() {
  std::ranges::fill(context_.held, Freshness::kNothing);
  ++context_.uses;
}

// A contribution may also be made from what fetch steps have read before.
bool PsSteps::reads_now(std::span<const RowSet> rows) const {
  return std::ranges::none_of(uses_,
                              [&](const PlanBinding::Use& use) { return was_brought(use, rows); });
}

// The answers to the last train step say so.
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

// An evaluation reads what was read for it.
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

// The ps copies each chunk under its lock, for which it waits like any writer.
void PsSteps::copy_chunks(VariableId variable) {
  if (core_.copy_mapped_chunks(variable)) return;
  for (const Piece& piece : core_.pieces_of(variable)) {
    ControlBuffers::Buffer& buffer = connection(piece).control().take();
    WireWriter(buffer.bytes).put(piece.id);
    core_.expect(piece, core_.bytes_of(piece));
    connection(piece).send_control(MessageType::kPull, {.step = step_}, buffer);
  }
  wait_for_values(variable);
}

// It has come, if the ps tasks say the truth.
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
  // Kernels only read mapped memory: a variable changes by contributions alone.
  const auto view = [&](const std::byte* mapped) {
    return TensorView{const_cast<std::byte*>(mapped), spec.dtype, spec.shape};
  };
  switch (*reads_[std::size_t(variable)]) {
    case MappedRead::kInPlace:
      return view(core_.mapped(variable));
    case MappedRead::kInCopy:
      return view(copy_by_ps(variable));
    case MappedRead::kCopiedInChunks:
      copy_chunks(variable);
      break;
  }
  return core_.value(variable).view();
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

// A step that is skipped has no factor.
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

// A ps that sends the values knows by itself that they are read.
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

}  // namespace paceline
