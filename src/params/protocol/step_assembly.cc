#include "params/protocol/step_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

[[noreturn]] void reject_contribution(const std::string& why) {
  throw Error(ErrorCode::kDataLoss, "[ps] " + why);
}

WantedValues wanted_by(std::uint16_t flags) {
  if ((flags & kRenewCopy) != 0) return WantedValues::kInItsCopy;
  return (flags & kSendValues) != 0 ? WantedValues::kInFrames : WantedValues::kNone;
}

}  // namespace

std::vector<AssemblyTarget> assembly_targets(std::span<const VariableSpec> variables,
                                             std::span<const Piece> pieces, int ps) {
  std::vector<AssemblyTarget> targets;
  for (const Piece& piece : pieces) {
    if (piece.ps != ps) continue;
    const VariableSpec& variable = variables[std::size_t(piece.variable)];
    targets.push_back({.where = piece,
                       .variable = variable.name,
                       .sparse = variable.sparse,
                       .trained = variable.trained,
                       .whole = variable.trained && variable.rule.whole(),
                       .row_bytes = row_bytes(variable)});
  }
  return targets;
}

StepAssembly::StepAssembly(std::vector<AssemblyTarget> targets)
    : targets_(std::move(targets)), parts_(targets_.size()) {}

void StepAssembly::begin(std::int64_t step, bool clipped, Fate fate) {
  if (open_) {
    reject_contribution(fmt::format("step {} begins before step {} has ended", step, step_));
  }
  step_ = step;
  clipped_ = clipped;
  fate_ = fate;
  open_ = true;
}

void StepAssembly::clip_known() {
  if (!std::exchange(clipped_, false)) reject_contribution("a clip scale that nobody waits for");
  if (std::ranges::any_of(parts_, &Part::started)) {
    reject_contribution("a clip scale that comes after a contribution");
  }
}

void StepAssembly::check_step(std::int64_t step, MessageType type) const {
  if (open_ && step == step_) return;
  reject_contribution(fmt::format("{} of step {} outside of it", name_of(type), step));
}

bool StepAssembly::applies_chunks(std::size_t position) const {
  return !targets_[position].sparse && !targets_[position].whole && !clipped_ &&
         fate_ != Fate::kKeep;
}

void StepAssembly::start(std::size_t position, std::size_t rows) {
  const AssemblyTarget& target = targets_[position];
  if (!target.trained) reject_contribution("a contribution to frozen " + target.variable);
  Part& part = parts_[position];
  part.started = true;
  part.shared = part.applied = false;
  part.wanted = target.sparse ? WantedValues::kNone : WantedValues::kInFrames;
  part.received = 0;
  part.expected = target.sparse ? rows * target.row_bytes : target.bytes();
}

void StepAssembly::rows(std::size_t position, std::span<const std::int32_t> rows) {
  const AssemblyTarget& target = targets_[position];
  if (!target.sparse || parts_[position].started) {
    reject_contribution("unexpected rows of " + target.variable);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!target.has_row(rows[i]) || (i > 0 && rows[i] <= rows[i - 1])) {
      reject_contribution(fmt::format("row {} of {} is not in piece {}, or not in ascending order",
                                      rows[i], target.variable, target.where.id));
    }
  }
  start(position, rows.size());
}

void StepAssembly::expect_chunk(std::size_t position, std::size_t offset, std::size_t bytes,
                                std::uint16_t flags) {
  const AssemblyTarget& target = targets_[position];
  Part& part = parts_[position];
  if (!part.started) {
    if (target.sparse) reject_contribution("a contribution of rows without their ids");
    start(position, 0);
    part.applied = applies_chunks(position);
    if ((flags & kPullsLater) != 0) part.wanted = WantedValues::kNone;
  }
  if (bytes == 0 || part.shared || offset != part.received ||
      bytes > part.expected - part.received || bytes % sizeof(float) != 0) {
    reject_contribution(fmt::format("chunk of {} bytes at {} of piece {}, which has {} of {} bytes",
                                    bytes, offset, target.where.id, part.received, part.expected));
  }
  if (part.applied && bytes > kChunkBytes) {
    reject_contribution(
        fmt::format("a chunk of {} bytes, at most {} are allowed", bytes, kChunkBytes));
  }
}

StepAssembly::Arrival StepAssembly::chunk(std::size_t position, std::size_t bytes) {
  Part& part = parts_[position];
  part.received += bytes;
  return {.apply = part.applied, .whole = part.received == part.expected};
}

StepAssembly::Arrival StepAssembly::shared(std::size_t position, std::size_t memory_bytes,
                                           std::size_t offset, std::uint16_t flags,
                                           std::span<const std::int32_t> rows_here) {
  const AssemblyTarget& target = targets_[position];
  Part& part = parts_[position];
  if (part.started) reject_contribution("a second contribution to " + target.variable);
  if (target.sparse) {
    rows(position, rows_here);
  } else {
    if (!rows_here.empty()) reject_contribution("rows of " + target.variable + ", which is dense");
    start(position, 0);
  }
  if (offset % sizeof(float) != 0 || offset > memory_bytes ||
      part.expected > memory_bytes - offset) {
    reject_contribution(fmt::format("{} bytes of {} at {} of a memory of {}", part.expected,
                                    target.variable, offset, memory_bytes));
  }
  part.received = part.expected;
  part.shared = true;
  if (!target.sparse) part.wanted = wanted_by(flags);
  return {.apply = !clipped_ && fate_ != Fate::kKeep, .whole = true};
}

void StepAssembly::check_whole(std::size_t position) {
  const AssemblyTarget& target = targets_[position];
  Part& part = parts_[position];
  if (!part.started && target.bytes() == 0) {
    start(position, 0);  // no frame brings an empty contribution
    part.applied = applies_chunks(position);
  }
  if (part.started && part.received == part.expected) return;
  reject_contribution(fmt::format("step {} ends with {} of {} bytes for piece {}", step_,
                                  part.received, part.expected, target.where.id));
}

bool StepAssembly::take_whole(std::size_t position) {
  return !std::exchange(parts_[position].applied, true);
}

void StepAssembly::end() {
  for (Part& part : parts_) part.started = false;
  open_ = false;
}

}  // namespace paceline
