#include "params/wire/round_messages.h"

#include "base/fingerprint.h"
#include "params/wire/message_fields.h"

namespace paceline {

std::uint64_t fingerprint_of(std::span<const std::int32_t> contributors) {
  return fingerprint_of(std::as_bytes(contributors));
}

void fields(auto& wire, Of<RoundContribution> auto& it) {
  wire(it.worker, it.incarnation, it.step, it.round, it.examples, it.clip_norm);
}

void fields(auto& wire, Of<RoundDecision> auto& decision) {
  wire(decision.closes, decision.round, decision.contributors, decision.dropped,
       decision.displaced);
}

void fields(auto& wire, Of<CommittedRound> auto& committed) {
  wire(committed.round, committed.contributors, committed.squares);
}

void fields(auto& wire, Of<BeginAgain> auto& again) { wire(again.unreached); }

void fields(auto& wire, Of<RoundSquares> auto& squares) { wire(squares.round, squares.sum); }

void fields(auto& wire, Of<RoundScale> auto& scale) { wire(scale.round, scale.scale); }

std::vector<std::byte> encode(const RoundContribution& contribution) {
  return encode_fields(contribution);
}

std::vector<std::byte> encode(const RoundDecision& decision) { return encode_fields(decision); }

std::vector<std::byte> encode(const CommittedRound& committed) { return encode_fields(committed); }

std::vector<std::byte> encode(const BeginAgain& again) { return encode_fields(again); }

std::vector<std::byte> encode(const RoundSquares& squares) { return encode_fields(squares); }

std::vector<std::byte> encode(const RoundScale& scale) { return encode_fields(scale); }

RoundContribution decode_round_contribution(std::span<const std::byte> payload) {
  return decode_fields<RoundContribution>(payload, "whole");
}

RoundDecision decode_round_decision(std::span<const std::byte> payload) {
  return decode_fields<RoundDecision>(payload, "decided");
}

CommittedRound decode_committed_round(std::span<const std::byte> payload) {
  return decode_fields<CommittedRound>(payload, "committed");
}

BeginAgain decode_begin_again(std::span<const std::byte> payload) {
  return decode_fields<BeginAgain>(payload, "begin_again");
}

RoundSquares decode_round_squares(std::span<const std::byte> payload) {
  return decode_fields<RoundSquares>(payload, "squares");
}

RoundScale decode_round_scale(std::span<const std::byte> payload) {
  return decode_fields<RoundScale>(payload, "scale");
}

}  // namespace paceline
