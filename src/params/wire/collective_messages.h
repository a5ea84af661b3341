// The messages between the workers of an all-reduce. Format: docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "paceline/task_position.h"

namespace paceline {

/// A worker's standing in the training of an all-reduce.
enum class Standing : std::uint8_t {
  kJoining,  // the worker waits to become a member
  kMember,   // the worker takes part in each step
  kRetired,  // the worker trains no more
};

struct GroupStatus {
  Standing standing = Standing::kJoining;
  std::uint64_t epoch = 0;  // the epoch in which the worker is, or was last, a member
  /// How many global steps the worker's values include; −1: it has no values.
  std::int64_t step = -1;
  std::vector<std::int32_t> members;  // of the epoch, ascending
  /// The workers that are connected with this worker, ascending.
  std::vector<std::int32_t> connected;
  /// The worker's timed training is over; the worker may make more steps, which no speed counts.
  bool done = false;
  bool ended = false;  // the worker has heard that the training of all has ended
  /// The worker has retired, and wants the values at the end of the training.
  bool wants_values = false;
  bool cut_off = false;       // the worker is cut off from a ps that it needs for a step
  std::int64_t counted = -1;  // global steps that the ps tasks have confirmed; −1: none
  /// The number of global steps up to the last one that the worker has committed, this one
  /// included; −1: none.
  std::int64_t committed = -1;
  bool saved = false;  // the worker has written the checkpoint at the end of the training
  bool operator==(const GroupStatus&) const = default;
};

struct Proposal {
  std::uint64_t epoch = 0;
  std::vector<std::int32_t> members;
  bool operator==(const Proposal&) const = default;
};

struct Agreement {
  std::uint64_t epoch = 0;  // of the proposal
  /// The highest epoch that the sender has agreed to. If this is above `epoch`, the sender refuses
  /// the proposal.
  std::uint64_t highest = 0;
  std::int64_t step = -1;     // as in GroupStatus
  std::int64_t counted = -1;  // as in GroupStatus
  bool in_place = false;      // the sender shares memory with all others of the proposal
  /// Unused records after that step; the last range has no end.
  std::vector<RecordRange> unused = {};
  std::vector<RecordRange> held = {};  // those of `unused` that the sender has taken
  bool operator==(const Agreement&) const = default;
};

struct Formation {
  std::uint64_t epoch = 0;
  std::vector<std::int32_t> members;
  std::int64_t step = 0;                 // how many global steps count: the next step follows them
  std::int64_t counted = -1;             // global steps that the ps tasks have counted; −1: none
  std::int32_t source = 0;               // the member that sends its values to the `lacking` ones
  std::vector<std::int32_t> lacking;     // ascending
  bool in_place = false;                 // all members share memory with each other
  std::vector<std::int64_t> own_steps;   // the next own step of each worker of the job
  std::vector<RecordRange> unused = {};  // unused records after the step; the last range has no end
  /// By member: the records of `unused` that the member has taken.
  std::vector<std::vector<RecordRange>> held = {};
  bool operator==(const Formation&) const = default;
};

struct CollectiveBegin {
  std::uint64_t epoch = 0;
  std::int64_t step = 0;       // global steps before this one
  std::int64_t examples = 0;   // of this worker's contribution
  std::int64_t own_step = 0;   // the number of this step among the worker's own steps
  std::int64_t made = 0;       // how many own steps this process had made before this one
  std::uint64_t training = 0;  // the fingerprint of the variables to which the plan contributes
  std::vector<RecordRange> records = {};  // records that the step reads, if they are shared out
  bool operator==(const CollectiveBegin&) const = default;
};

/// Names the step that the messages sums_whole and commit are about.
struct StepMark {
  std::uint64_t epoch = 0;
  std::int64_t step = 0;  // global steps before it
  bool operator==(const StepMark&) const = default;
};

std::vector<std::byte> encode(const GroupStatus& status);
std::vector<std::byte> encode(const Proposal& proposal);
std::vector<std::byte> encode(const Agreement& agreement);
std::vector<std::byte> encode(const Formation& formation);
std::vector<std::byte> encode(const CollectiveBegin& begin);
std::vector<std::byte> encode(const StepMark& mark);

/// All decoders throw kDataLoss naming the message.
GroupStatus decode_group_status(std::span<const std::byte> payload);
Proposal decode_proposal(std::span<const std::byte> payload);
Agreement decode_agreement(std::span<const std::byte> payload);
Formation decode_formation(std::span<const std::byte> payload);
CollectiveBegin decode_collective_begin(std::span<const std::byte> payload);
/// Throws kDataLoss, which calls the message by the name `message`.
StepMark decode_step_mark(std::span<const std::byte> payload, const char* message);

}  // namespace paceline
