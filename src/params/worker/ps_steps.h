// The steps of one plan on a worker's store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "params/protocol/value_requests.h"
#include "params/worker/contribution_sender.h"
#include "params/worker/fetch_ahead.h"
#include "params/worker/worker_context.h"

namespace paceline {

class PsSteps : public StoreSteps {
 public:
  /// Throws kInvalidArgument when the plan uses a variable in a way that it cannot be.
  /// In rounds the store clips by `clip_norm`; else the plan does, if it is above 0.
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

  /// The way in which kernels read values in the memory of a ps: where they lie; in the copy that
  /// the ps makes for this worker, since several kernels read them and others change them; in a
  /// copy of versioned chunks (--torn-free).
  enum class MappedRead : std::uint8_t { kInPlace, kInCopy, kCopiedInChunks };

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
  void copy_chunks(VariableId variable);
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

  /// True when contributions wait for the factor by which the plan clips them: a ps that knows it
  /// applies and answers each chunk when it comes, so that values return while others leave.
  bool keeps_contributions() const { return clipped_ && !in_rounds(); }
  bool in_rounds() const { return core_.options().aggregation.kind == AggregationKind::kRounds; }

  WorkerContext& context_;
  WorkerState& core_;
  const std::vector<PlanBinding::Use> uses_;
  const bool clipped_;
  std::vector<std::optional<MappedRead>> reads_;  // by variable; none: the plan does not use it
  std::vector<bool> contributed_;                 // by variable
  std::vector<VariableId> kept_;                  // contributions that are not sent yet
  FetchAhead ahead_;
  ContributionSender sender_;
  // These are kept from step to step for their memory.
  StepBegin begin_;
  std::vector<StepEnd> ends_;  // by ps
  RowsAhead next_rows_;
  StepKind kind_ = StepKind::kTrain;
  bool fetched_ = false;    // since the last train step
  std::uint64_t step_ = 0;  // on the wire: counts this store's train steps
  Handle handle_;
};

}  // namespace paceline
