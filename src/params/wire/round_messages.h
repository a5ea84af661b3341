// The messages about synchronous rounds, between ps tasks and between ps 0 and workers. Format:
// docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

/// One worker's contribution to a round, without its numbers.
struct RoundContribution {
  std::int32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::int64_t step = 0;      // the number of the worker's own step
  std::int64_t round = 0;     // the contribution is made from the values after this many rounds
  std::int64_t examples = 0;  // of how many examples the contribution is the mean
  float clip_norm = 0;        // 0: the round is not clipped
  bool operator==(const RoundContribution&) const = default;
};

/// A decision of ps 0 about contributions. Every ps carries the decisions out in the order in which
/// ps 0 made them.
struct RoundDecision {
  /// True when a round is closed: the contributors' contributions are summed and applied.
  bool closes = false;
  std::int64_t round = 0;  // the round that is closed; otherwise, the round that is open
  std::vector<RoundContribution> contributors;  // by worker, ascending
  /// These are applied nowhere, but their workers get an answer: contributions that are too late,
  /// contributions with NaN, and the first one of a late joiner.
  std::vector<RoundContribution> dropped;
  /// Of older processes of a worker: forgotten, without an answer.
  std::vector<RoundContribution> displaced;
  bool operator==(const RoundDecision&) const = default;
};

/// Returns a number by which the contributors of a round, in ascending order, differ from any other
/// contributors (StepDone::contributors).
std::uint64_t fingerprint_of(std::span<const std::int32_t> contributors);

/// A worker's message about a round that the workers have committed among themselves.
struct CommittedRound {
  std::int64_t round = 0;
  std::vector<std::int32_t> contributors;  // ascending
  double squares = 0;  // the sum of the squares of the part of the mean that the workers keep
  bool operator==(const CommittedRound&) const = default;
};

/// The chief's message that the values of the ps tasks cannot be used any more, so all ps tasks
/// must forget them.
struct BeginAgain {
  /// The workers that the chief does not reach. While one of them trains, the values are still of
  /// use, and ps 0 refuses.
  std::vector<std::int32_t> unreached;
  bool operator==(const BeginAgain&) const = default;
};

/// The sum of the squares of the mean, over the variables of one ps.
struct RoundSquares {
  std::int64_t round = 0;
  double sum = 0;
  bool operator==(const RoundSquares&) const = default;
};

/// The factor by which the mean of a round is clipped.
struct RoundScale {
  std::int64_t round = 0;
  float scale = 1;
  bool operator==(const RoundScale&) const = default;
};

std::vector<std::byte> encode(const RoundContribution& contribution);
std::vector<std::byte> encode(const RoundDecision& decision);
std::vector<std::byte> encode(const CommittedRound& committed);
std::vector<std::byte> encode(const BeginAgain& again);
std::vector<std::byte> encode(const RoundSquares& squares);
std::vector<std::byte> encode(const RoundScale& scale);
/// All decoders throw kDataLoss naming the message.
RoundContribution decode_round_contribution(std::span<const std::byte> payload);
RoundDecision decode_round_decision(std::span<const std::byte> payload);
CommittedRound decode_committed_round(std::span<const std::byte> payload);
BeginAgain decode_begin_again(std::span<const std::byte> payload);
RoundSquares decode_round_squares(std::span<const std::byte> payload);
RoundScale decode_round_scale(std::span<const std::byte> payload);

}  // namespace paceline
