#include "params/shard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "net/frame.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// Small enough to change no result, large enough to change every bit pattern near 1.
constexpr float kRewriteStep = 0x1p-20f;

std::size_t machine_bytes() {
  return std::size_t(sysconf(_SC_PHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));
}

// Refused before anything is allocated: what is declared comes over a link.
void check_can_hold(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                    int ps) {
  double bytes = 0;
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
  }
  if (bytes > double(machine_bytes())) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[ps] the variables need {:.0f} MB, this machine has {:.0f} MB",
                            bytes / 1e6, double(machine_bytes()) / 1e6));
  }
}

}  // namespace

ShardPiece::ShardPiece(const VariableSpec& variable, const Piece& where)
    : variable_(variable),
      where_(where),
      row_bytes_(paceline::row_bytes(variable)),
      slot_specs_(slots_of(variable)),
      value_(piece_bytes(variable, where)) {
  for (const SlotSpec& slot : slot_specs_) {
    if (slot.scalar) {
      count_slot_ = int(slots_.size());
    } else {
      large_slots_.push_back(slots_.size());
    }
    slots_.emplace_back(slot.scalar ? kScalarSlotBytes : value_.size());
  }
  slot_pointers_.resize(large_slots_.size());
  reset_slots();
}

void ShardPiece::reset_slots() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slot_specs_[i].scalar) {
      count_ = std::int64_t(slot_specs_[i].initial);
      continue;
    }
    float* const values = reinterpret_cast<float*>(slots_[i].data());
    std::fill_n(values, slots_[i].size() / sizeof(float), slot_specs_[i].initial);
  }
}

std::int64_t ShardPiece::begin_contribution() {
  const std::lock_guard lock(mutex_);
  return ++count_;
}

void ShardPiece::point_slots_at(std::int64_t element) {
  for (std::size_t i = 0; i < large_slots_.size(); ++i) {
    slot_pointers_[i] = reinterpret_cast<float*>(slots_[large_slots_[i]].data()) + element;
  }
}

void ShardPiece::apply(const RuleStep& step, std::size_t offset,
                       std::span<const std::byte> gradient, std::span<std::byte> updated) {
  const std::size_t elements = gradient.size() / sizeof(float);
  const std::lock_guard lock(mutex_);
  point_slots_at(std::int64_t(offset / sizeof(float)));
  float* const values = reinterpret_cast<float*>(value_.data() + offset);
  apply_rule(variable_.rule, step,
             {.values = {values, elements},
              .slots = slot_pointers_,
              .gradient = {reinterpret_cast<const float*>(gradient.data()), elements}});
  if (!updated.empty()) std::memcpy(updated.data(), values, updated.size());
}

void ShardPiece::apply_rows(const RuleStep& step, std::span<const std::int32_t> rows,
                            const float* gradient) {
  const std::int64_t row_size = std::int64_t(row_bytes_ / sizeof(float));
  const std::int64_t before = where_.first_row * row_size;
  const std::lock_guard lock(mutex_);
  // Rows are named as in the variable: the pointers stand where its row 0 would be. No element
  // before the piece is touched, since every row was checked to be in it.
  const auto shifted = [&](std::byte* data) {
    return reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(data) -
                                    std::uintptr_t(before) * sizeof(float));
  };
  for (std::size_t i = 0; i < large_slots_.size(); ++i) {
    slot_pointers_[i] = shifted(slots_[large_slots_[i]].data());
  }
  apply_rule_to_rows(variable_.rule, step,
                     {.values = shifted(value_.data()),
                      .slots = slot_pointers_,
                      .ids = rows,
                      .gradient = gradient,
                      .row_size = row_size});
}

void ShardPiece::copy(std::size_t offset, std::span<std::byte> values) {
  const std::lock_guard lock(mutex_);
  if (!values.empty()) std::memcpy(values.data(), value_.data() + offset, values.size());
}

void ShardPiece::copy_rows(std::span<const std::int32_t> rows, std::span<std::byte> values) {
  const std::lock_guard lock(mutex_);
  if (row_bytes_ == 0) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t row = std::size_t(rows[i] - where_.first_row);
    std::memcpy(values.data() + i * row_bytes_, value_.data() + row * row_bytes_, row_bytes_);
  }
}

void ShardPiece::rewrite() {
  if (variable_.dtype != DType::kFloat32) return;
  const std::lock_guard lock(mutex_);
  const float change = raised_ ? -kRewriteStep : kRewriteStep;
  raised_ = !raised_;
  float* const values = reinterpret_cast<float*>(value_.data());
  for (std::size_t i = 0; i < value_.size() / sizeof(float); ++i) values[i] += change;
}

std::span<std::byte> ShardPiece::array(std::size_t array) {
  return array == 0 ? value_.span() : slots_[array - 1].span();
}

std::size_t ShardPiece::array_bytes(std::size_t array) const {
  return array == 0 ? value_.size() : slots_[array - 1].size();
}

std::size_t ShardPiece::all_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < arrays(); ++i) bytes += array_bytes(i);
  return bytes;
}

void ShardPiece::write(std::size_t index, std::size_t offset, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes.empty()) return;
  // The value comes first: slots that do not follow begin anew.
  if (index == 0 && offset == 0) reset_slots();
  std::memcpy(array(index).data() + offset, bytes.data(), bytes.size());
  if (index > 0 && int(index) - 1 == count_slot_) {
    std::memcpy(&count_, slots_[index - 1].data(), sizeof(count_));
  }
}

void ShardPiece::copy_all(std::span<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (count_slot_ >= 0) {
    std::memcpy(slots_[std::size_t(count_slot_)].data(), &count_, sizeof(count_));
  }
  for (std::size_t i = 0; i < arrays(); ++i) {
    const std::span<std::byte> from = array(i);
    if (!from.empty()) std::memcpy(bytes.data(), from.data(), from.size());
    bytes = bytes.subspan(from.size());
  }
}

Shard::Shard(std::vector<VariableSpec> variables, std::vector<Piece> pieces, int ps)
    : variables_(std::move(variables)), pieces_(std::move(pieces)), positions_(pieces_.size(), -1) {
  check_can_hold(variables_, pieces_, ps);
  for (const Piece& piece : pieces_) {
    if (piece.ps != ps) continue;
    positions_[piece.id] = int(local_.size());
    local_.push_back(std::make_unique<ShardPiece>(variables_[std::size_t(piece.variable)], piece));
    bytes_ += local_.back()->all_bytes();
  }
}

std::size_t Shard::position(std::uint32_t id) const {
  if (id >= positions_.size() || positions_[id] < 0) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[ps] piece {} is not here", id));
  }
  return std::size_t(positions_[id]);
}

}  // namespace paceline
