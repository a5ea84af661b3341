#include "params/shard/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/machine_memory.h"
#include "net/frame.h"
#include "paceline/error.h"
#include "params/shard/layout.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

// Refuses pieces that this machine cannot hold. This happens before anything is allocated, since a
// declaration arrives over a link and may name any size.
void check_can_hold(std::span<const VariableSpec> variables, std::span<const Piece> pieces, int ps,
                    int contributions) {
  double bytes = 0, trained = 0;
  for (const Piece& piece : pieces) {
    if (piece.ps != ps) continue;
    const VariableSpec& variable = variables[std::size_t(piece.variable)];
    if (variable.trained && variable.dtype != DType::kFloat32) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[ps] variable {} is {}: a rule updates float32 only", variable.name,
                              name_of(variable.dtype)));
    }
    if (variable.sparse && row_bytes(variable) > kMaxPayloadBytes / 2) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[ps] a row of {} has {} bytes, at most {} fit a message",
                              variable.name, row_bytes(variable), kMaxPayloadBytes / 2));
    }
    const double rows = double(piece.rows) * double(row_bytes(variable));
    bytes += rows * double(1 + slots_of(variable).size());
    if (variable.trained) trained += rows;
  }
  check_fits_machine("[ps] the variables need", bytes);
  if (contributions == 0) return;
  check_fits_machine(
      fmt::format("[ps] the variables and {} contributions that wait for their round need",
                  contributions),
      bytes + contributions * trained);
}

// The chief may have been started with other flags than this ps, and then may not declare the
// variables that this ps changes.
void check_after_reads(const AfterReads& after_reads, std::span<const VariableSpec> variables) {
  for (const auto& [name, change] : after_reads) {
    const auto variable = std::ranges::find(variables, name, &VariableSpec::name);
    if (variable != variables.end() && variable->dtype == DType::kFloat32) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[ps] it is to change variable {} after each read, {}", name,
                            variable == variables.end() ? "which is not declared"
                                                        : "which is not of float32"));
  }
}

}  // namespace

Shard::Shard(std::vector<VariableSpec> variables, std::vector<Piece> pieces, int ps,
             ApplyPool& pool, const AfterReads& after_reads, int contributions)
    : variables_(std::move(variables)),
      pieces_(std::move(pieces)),
      ps_(ps),
      pool_(pool),
      positions_(pieces_.size(), -1) {
  check_can_hold(variables_, pieces_, ps, contributions);
  check_after_reads(after_reads, variables_);
  const ShardLayout layout = shard_layout(variables_, pieces_, ps);
  values_ = SharedMemory::create(layout.bytes);
  for (const Piece& piece : pieces_) {
    if (piece.ps != ps) continue;
    positions_[piece.id] = int(local_.size());
    const VariableSpec& variable = variables_[std::size_t(piece.variable)];
    const std::size_t bytes = piece_bytes(variable, piece);
    offsets_.push_back(layout.offsets[piece.id]);
    std::byte* const start = values_->bytes().data();
    local_.push_back(std::make_unique<ShardPiece>(
        variable, piece, std::span(start + layout.offsets[piece.id], bytes), pool));
    bytes_ += local_.back()->all_bytes();
    const auto change = after_reads.find(variable.name);
    if (change != after_reads.end()) local_.back()->change_after_reads(change->second);
  }
}

std::vector<VariableId> Shard::changed_after_reads() const {
  std::vector<VariableId> variables;
  for (const auto& piece : local_) {
    const VariableId variable = piece->where().variable;
    if (!piece->changes_after_reads()) continue;
    if (variables.empty() || variables.back() != variable) variables.push_back(variable);
  }
  return variables;
}

std::size_t Shard::position(std::uint32_t id) const {
  if (id >= positions_.size() || positions_[id] < 0) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[ps] piece {} is not here", id));
  }
  return std::size_t(positions_[id]);
}

}  // namespace paceline
