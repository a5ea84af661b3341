// What one worker contributes in one step, as its frames come in, piece by piece.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "net/frame.h"
#include "params/shard/shard.h"
#include "params/wire/message.h"

namespace paceline {

/// What the worker is to have of the values that its contribution makes.
enum class WantedValues : std::uint8_t { kNone, kInFrames, kInItsCopy };

/// A contribution to one piece, while it comes. Frames come in order, so it has arrived up to
/// `received` bytes.
struct IncomingPiece {
  std::vector<std::int32_t> rows;  // sparse: which
  bool started = false;
  bool under_way = false;  // counted by the shard's piece, and not yet applied as a whole
  std::size_t received = 0;
  std::size_t expected = 0;
  std::int64_t count = 0;  // what Adam's t is for it
  bool applied = false;    // chunk by chunk: as they come
  bool shared = false;     // it lies in memory of the worker, which waits to be told
  WantedValues wanted = WantedValues::kInFrames;
  std::span<const std::byte> gradient;  // once all of it has come, unless it came chunk by chunk
  std::span<const std::byte> chunk;     // what came last
  Buffer memory;                        // clipped or sparse: all of it; else one chunk
};

/// The contributions of one connection. Checks every frame against the step that it belongs to and
/// the piece that it is for; throws kDataLoss on one that cannot be. One thread at a time.
class IncomingStep {
 public:
  /// `wire`: what the float32 numbers of chunks travel as.
  IncomingStep(Shard& shard, DType wire)
      : shard_(shard), rounded_(wire == DType::kBFloat16), pieces_(shard.size()) {}
  /// What a lost worker had begun is under way no more.
  ~IncomingStep();
  IncomingStep(const IncomingStep&) = delete;
  IncomingStep& operator=(const IncomingStep&) = delete;

  void begin(std::int64_t step, const StepBegin& begin, Fate fate);
  bool open() const { return open_; }
  Fate fate() const { return fate_; }
  /// False when this step was applied before and must not be again.
  bool counts() const { return fate_ == Fate::kApply; }
  bool clipped() const { return begin_.clipped; }
  std::int64_t step() const { return step_; }
  /// Of the piece's variable, as the rule wants it.
  RuleStep rule_step(std::size_t position, float clip_scale) const;

  /// kRowIds: the rows that the chunks which follow are.
  void set_rows(std::size_t position, std::int64_t step, std::span<const std::int32_t> rows);
  /// kChunk: where its payload goes.
  std::span<std::byte> place(const FrameHeader& header);
  /// kChunk: it has come.
  IncomingPiece& arrived(const FrameHeader& header);
  /// kContribution: all of it is there, in the worker's memory. `rows` of a sparse variable only.
  IncomingPiece& arrived_in_shared_memory(std::span<const std::byte> memory,
                                          const FrameHeader& header,
                                          std::span<const std::int32_t> rows);
  /// All of it has been applied.
  void applied(std::size_t position);
  /// At the end of the step. Throws unless all of it has come.
  IncomingPiece& whole(std::size_t position);
  void end();

 private:
  IncomingPiece& find(const FrameHeader& header);
  std::size_t chunk_bytes(const FrameHeader& header) const;
  std::span<std::byte> chunk_of(const IncomingPiece& piece, const FrameHeader& header) const;
  void start(std::size_t position, IncomingPiece& piece);
  void make_room(std::size_t position, IncomingPiece& piece) const;
  void take_rows(std::size_t position, std::span<const std::int32_t> rows);
  void check_step(std::int64_t step, MessageType type) const;

  Shard& shard_;
  const bool rounded_;
  std::vector<IncomingPiece> pieces_;  // by position in the shard
  StepBegin begin_;
  std::int64_t step_ = -1;
  bool open_ = false;
  Fate fate_ = Fate::kDrop;
};

}  // namespace paceline
