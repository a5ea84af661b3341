// Follows the contributions of a worker's step as their frames arrive at a ps: a plain state
// machine. Headers and sizes go in, and the answer says which bytes are applied now. It has no
// memory of contributions or values, no thread, link or clock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "params/protocol/aggregation.h"
#include "params/protocol/frame_cuts.h"
#include "params/protocol/placement.h"
#include "params/wire/message.h"

namespace paceline {

/// In which form the worker gets the new values after its contribution.
enum class WantedValues : std::uint8_t { kNone, kInFrames, kInItsCopy };

/// What the state machine knows about a piece, to check contributions to it.
struct AssemblyTarget {
  Piece where;
  std::string variable;  // its name
  bool sparse = false, trained = true;
  bool whole = false;  // the rule needs the whole piece at once
  std::size_t row_bytes = 0;
  std::size_t bytes() const { return std::size_t(where.rows) * row_bytes; }
  bool has_row(std::int64_t row) const {
    return row >= where.first_row && row < where.first_row + where.rows;
  }
};

/// Returns the targets for the pieces on one ps, in the order of the list.
std::vector<AssemblyTarget> assembly_targets(std::span<const VariableSpec> variables,
                                             std::span<const Piece> pieces, int ps);

/// The contributions of one connection. Pieces are named by their position among the targets. Each
/// frame is checked against its step and its piece; a frame that cannot be right throws kDataLoss.
/// A step allocates nothing once earlier steps have made enough memory.
class StepAssembly {
 public:
  explicit StepAssembly(std::vector<AssemblyTarget> targets);

  /// How much of the contribution to one piece has arrived. Frames arrive in order, so the bytes
  /// that have arrived are the first ones.
  struct Part {
    bool started = false;
    /// The contribution lies in the worker's shared memory, and the worker waits for the answer.
    bool shared = false;
    /// The bytes are applied as they arrive, or take_whole() has returned true.
    bool applied = false;
    WantedValues wanted = WantedValues::kInFrames;
    std::size_t received = 0, expected = 0;  // bytes of float32
  };

  /// Begins the step with its first frame.
  void begin(std::int64_t step, bool clipped, Fate fate);
  bool open() const { return open_; }
  std::int64_t step() const { return step_; }
  Fate fate() const { return fate_; }
  /// True when the step's contributions are applied now; false when they are kept for a round, or
  /// dropped.
  bool counts() const { return fate_ == Fate::kApply; }
  /// True when the chunks of a piece are applied as they arrive, so that they need memory for one
  /// chunk only.
  bool applies_chunks(std::size_t position) const;
  const Part& part(std::size_t position) const { return parts_[position]; }

  /// Call it once the step's clip factor is known: contributions are applied as they arrive from
  /// now on. Throws unless the step is clipped and none of its contributions has begun.
  void clip_known();
  /// Throws unless the step is under way.
  void check_step(std::int64_t step, MessageType type) const;
  /// Takes the rows (kRowIds) of the chunks that follow. They must be unique and ascending, so that
  /// the rule meets each row once.
  void rows(std::size_t position, std::span<const std::int32_t> rows);
  /// Takes the header of a kChunk, before its payload. The flags of a piece's first chunk hold for
  /// all its chunks.
  void expect_chunk(std::size_t position, std::size_t offset, std::size_t bytes,
                    std::uint16_t flags = 0);
  /// What to do with bytes that have arrived.
  struct Arrival {
    bool apply = false;  // apply the bytes now if the step counts, and answer the worker
    bool whole = false;  // the whole contribution has now arrived
  };
  /// Takes the payload of a kChunk, after expect_chunk() of the same header.
  Arrival chunk(std::size_t position, std::size_t bytes);
  /// Takes a kContribution, which says where the whole contribution lies: from `offset` on, in a
  /// memory of `memory_bytes`. The contribution is applied now, unless it is kept for a round or
  /// the step's clip factor is not known yet.
  Arrival shared(std::size_t position, std::size_t memory_bytes, std::size_t offset,
                 std::uint16_t flags, std::span<const std::int32_t> rows);
  /// Throws unless the whole contribution has arrived. Call it for each piece that kStepEnd names.
  void check_whole(std::size_t position);
  /// Call it when the whole contribution has arrived. Returns true, once, if it is to be applied as
  /// a whole.
  bool take_whole(std::size_t position);
  /// Ends the step with its last frame.
  void end();

 private:
  void start(std::size_t position, std::size_t rows);

  const std::vector<AssemblyTarget> targets_;
  std::vector<Part> parts_;  // by position
  std::int64_t step_ = -1;
  /// `clipped_`: the step is clipped by a factor that is not known yet.
  bool open_ = false, clipped_ = false;
  Fate fate_ = Fate::kDrop;
};

}  // namespace paceline
