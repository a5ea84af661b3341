// The contributions of one worker's step in memory: the real driver of protocol/step_assembly.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "net/frame.h"
#include "params/protocol/step_assembly.h"
#include "params/shard/shard.h"
#include "params/wire/message.h"
#include "params/wire/travelling_type.h"

namespace paceline {

/// The contribution to one piece. IncomingStep::part() tells how much of it has arrived.
struct IncomingPiece {
  std::vector<std::int32_t> rows;       // rows of a sparse variable
  std::int64_t count = 0;               // the count of the contribution (Adam's t)
  std::span<const std::byte> gradient;  // the whole gradient; empty if applied chunk by chunk
  std::span<const std::byte> chunk;     // the last chunk that arrived
  Buffer memory;       // holds the whole gradient, or one chunk if it is applied chunk by chunk
  bool begun = false;  // the piece has begun in this step
  /// The shard counts this contribution among those that are not applied yet.
  bool under_way = false;
};

/// The contributions of one connection. Checks every frame against its step and its piece, and
/// throws kDataLoss for a frame that cannot be right. One thread calls it at a time.
class IncomingStep {
 public:
  /// `wire` is the form in which the float32 numbers of chunks travel.
  IncomingStep(Shard& shard, const ContributionForm& wire);
  /// Ends the contributions that a lost worker had begun.
  ~IncomingStep();
  IncomingStep(const IncomingStep&) = delete;
  IncomingStep& operator=(const IncomingStep&) = delete;

  void begin(std::int64_t step, const StepBegin& begin, Fate fate, bool must_be_finite = false);
  /// These two set the step's clip factor, which arrives with kClip or with the end of the step.
  void clip(std::int64_t step, const StepClip& clip);
  void clip_at_end(float scale) { clip_scale_ = scale; }
  /// Call it when the norm of the step's gradient is not finite: the step is then applied nowhere.
  void skip() { skipped_ = true; }
  bool must_be_finite() const { return must_be_finite_; }
  bool open() const { return assembly_.open(); }
  Fate fate() const { return assembly_.fate(); }
  /// True when the step's contributions are applied now: the step is not kept for a round, dropped
  /// or skipped.
  bool counts() const { return assembly_.counts() && !skipped_; }
  std::int64_t step() const { return assembly_.step(); }
  /// Returns the numbers with which the rule of the piece's variable is applied.
  RuleStep rule_step(std::size_t position) const;
  float learning_rate(VariableId variable) const {
    return begin_.learning_rates[std::size_t(variable)];
  }
  /// Marks that the whole step has arrived, and that a RoundApplier now reads it. Until the
  /// RoundApplier calls end(), nothing else may change this object.
  void keep() { kept_ = true; }
  bool kept() const { return kept_; }
  const StepAssembly::Part& part(std::size_t position) const { return assembly_.part(position); }
  const IncomingPiece& piece(std::size_t position) const { return pieces_[position]; }

  /// Takes kRowIds: the rows of the chunks that follow.
  void set_rows(std::size_t position, std::int64_t step, std::span<const std::int32_t> rows);
  /// Returns the memory for the payload of a kChunk.
  std::span<std::byte> place(const FrameHeader& header);
  /// Takes a kChunk whose payload has arrived.
  StepAssembly::Arrival arrived(std::size_t position, const FrameHeader& header);
  /// Takes a kContribution. The contribution lies whole in `memory`, which the worker shares. Only
  /// a sparse variable has `rows`.
  StepAssembly::Arrival arrived_in_shared_memory(std::size_t position,
                                                 std::span<const std::byte> memory,
                                                 const FrameHeader& header,
                                                 std::span<const std::int32_t> rows);
  /// Call it at the end of the step. Throws unless the whole contribution has arrived.
  void check_whole(std::size_t position);
  /// Call it when the whole contribution has arrived. Returns true, once, if it is to be applied as
  /// a whole.
  bool take_whole(std::size_t position) { return assembly_.take_whole(position); }
  /// Call it when the whole contribution has been applied.
  void applied(std::size_t position);
  void end();

 private:
  std::size_t find(const FrameHeader& header);
  std::size_t chunk_bytes(std::size_t position, const FrameHeader& header) const;
  std::span<std::byte> chunk_of(std::size_t position, const FrameHeader& header) const;
  bool begin_piece(std::size_t position);
  void make_room(std::size_t position);

  Shard& shard_;
  const ContributionForm wire_;
  StepAssembly assembly_;
  std::vector<IncomingPiece> pieces_;  // by position in the shard
  StepBegin begin_;
  float clip_scale_ = 1;
  bool must_be_finite_ = false, skipped_ = false;
  std::atomic<bool> kept_{false};
};

}  // namespace paceline
