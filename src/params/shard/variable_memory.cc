#include "params/shard/variable_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/copy_bytes.h"
#include "base/machine_memory.h"
#include "base/row_count.h"
#include "graph/rule_program.h"
#include "paceline/error.h"
#include "params/shard/not_finite.h"
#include "params/variable_arrays.h"
#include "params/weighted_sum.h"

namespace paceline {
namespace {

[[noreturn]] void refuse(const VariableSpec& spec, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("[variable {}] {}", spec.name, why));
}

RuleProgram::Extent extent_of(const VariableSpec& spec) {
  const std::int64_t rows = row_count(spec.shape);
  return {rows, rows == 0 ? 0 : spec.shape.elements() / rows};
}

void check_whole(const VariableSpec& spec) {
  if (spec.sparse) {
    refuse(spec, fmt::format("rule {} cannot be applied by rows: it asks for the whole variable",
                             spec.rule.name()));
  }
  const double bytes = spec.rule.program()->most_elements(extent_of(spec)) * sizeof(float);
  check_fits_machine(fmt::format("[variable {}] rule {} needs", spec.name, spec.rule.name()),
                     bytes);
}

const VariableSpec& checked(const VariableSpec& spec) {
  if (spec.sparse && spec.shape.rank() < 1) refuse(spec, "a scalar has no rows");
  if (spec.trained && spec.dtype != DType::kFloat32) {
    refuse(spec, fmt::format("rules are for float32, not {}", name_of(spec.dtype)));
  }
  if (spec.trained && spec.sparse && spec.rule.kind() == RuleKind::kEma) {
    refuse(spec, "rule ema cannot be applied by rows");
  }
  if (spec.trained && spec.rule.whole()) check_whole(spec);
  return spec;
}

const VariableSpec& checked_rows(const VariableSpec& spec, std::int64_t rows) {
  if (spec.trained && spec.rule.whole() && rows != row_count(spec.shape)) {
    refuse(spec, fmt::format("is split, and rule {} asks for all of it", spec.rule.name()));
  }
  return checked(spec);
}

void expect_type(const VariableSpec& spec, const std::string& what, const Tensor& tensor,
                 DType dtype, const Shape& shape) {
  if (tensor.defined() && tensor.dtype() == dtype && tensor.shape() == shape) return;
  refuse(spec, fmt::format("{} is {} {}, not {} {}", what, name_of(tensor.dtype()),
                           tensor.shape().str(), name_of(dtype), shape.str()));
}

// If the target has memory, copies the numbers into that memory, since a step may hold a view of
// it.
void put_into(Tensor& target, Tensor source) {
  if (!target.defined()) {
    target = source.shared() ? source.clone() : std::move(source);
  } else if (source.bytes() > 0) {
    std::memmove(target.raw(), source.raw(), source.bytes());
  }
}

std::span<std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.raw()), tensor.bytes()};
}

template <typename F>
void for_ranges(ThreadPool* pool, std::int64_t n, std::int64_t grain, F&& function) {
  if (pool == nullptr) return function(std::int64_t{0}, n);
  pool->parallel_for(n, grain, function);
}

}  // namespace

VariableMemory::VariableMemory(const VariableSpec& spec)
    : spec_(checked(spec)),
      first_row_(0),
      shape_(spec_.shape),
      row_bytes_(paceline::row_bytes(spec_)),
      slot_specs_(slots_of(spec_)),
      slots_(slot_specs_.size()) {}

VariableMemory::VariableMemory(const VariableSpec& spec, std::int64_t first_row, std::int64_t rows,
                               std::span<std::byte> value)
    : spec_(checked_rows(spec, rows)),
      first_row_(first_row),
      shape_(shape_of_rows(spec_, rows)),
      row_bytes_(paceline::row_bytes(spec_)),
      slot_specs_(slots_of(spec_)),
      value_(value),
      slots_(slot_specs_.size()) {
  make_slots();
  reset_slots();
  settle();
}

void VariableMemory::make_slots() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slot_specs_[i].scalar || slots_[i].defined()) continue;
    slots_[i] = Tensor(DType::kFloat32, shape_);
  }
}

// Notes the addresses of all arrays. Call it once they exist, and again when one has moved.
void VariableMemory::settle() {
  if (own_value_.defined()) value_ = bytes_of(own_value_);
  full_slots_.clear();
  std::vector<std::span<const std::byte>> arrays = {value_};
  for (const Tensor& slot : slots_) {
    if (!slot.defined()) continue;
    full_slots_.push_back(slot.data<float>().data());
    arrays.emplace_back(bytes_of(slot));
  }
  PACELINE_CHECK(full_slots_.size() <= kMaxSlots);
  snapshot_ = std::make_unique<CopyOnWriteSnapshot>(std::move(arrays));
}

std::size_t VariableMemory::array_bytes(std::size_t array) const {
  return is_scalar(array) ? kScalarSlotBytes : value_.size();
}

std::span<const std::byte> VariableMemory::slot_bytes(std::size_t slot) const {
  return bytes_of(slots_[slot]);
}

std::size_t VariableMemory::all_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < arrays(); ++i) bytes += array_bytes(i);
  return bytes;
}

void VariableMemory::reset_slots() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const float initial = slot_specs_[i].initial;
    if (slot_specs_[i].scalar) {
      count_ = std::int64_t(initial);
    } else {
      std::ranges::fill(slots_[i].data<float>(), initial);
    }
  }
}

void VariableMemory::begin_average(std::size_t offset, std::span<const std::byte> bytes) {
  if (!has_average(spec_)) return;
  copy_bytes(bytes_of(slots_.back()).data() + offset, bytes.data(), bytes.size());
}

void VariableMemory::check(const VariableState& state) const {
  expect_type(spec_, "its value", state.value, spec_.dtype, shape_);
  if (state.slots.empty()) return;
  if (state.slots.size() != slot_specs_.size()) {
    refuse(spec_, fmt::format("{} slots given, {} are kept by its rule {}", state.slots.size(),
                              slot_specs_.size(), spec_.rule.name()));
  }
  for (std::size_t i = 0; i < slot_specs_.size(); ++i) {
    const bool scalar = slot_specs_[i].scalar;
    expect_type(spec_, "slot " + slot_specs_[i].name, state.slots[i],
                scalar ? DType::kInt64 : DType::kFloat32, scalar ? Shape{1} : shape_);
  }
}

void VariableMemory::put_value(Tensor value) {
  if (written() && !own_value_.defined()) {
    if (!value_.empty()) std::memmove(value_.data(), value.raw(), value_.size());
  } else {
    put_into(own_value_, std::move(value));
  }
}

void VariableMemory::put_slots(std::vector<Tensor> slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slot_specs_[i].scalar) {
      count_ = slots[i].item<std::int64_t>();
    } else {
      put_into(slots_[i], std::move(slots[i]));
    }
  }
}

void VariableMemory::write(VariableState state) {
  check(state);
  const bool first = !written(), begins = state.slots.empty();
  if (!first) before_change(0, value_.size());
  put_slots(std::move(state.slots));
  put_value(std::move(state.value));
  if (begins) {
    make_slots();
    reset_slots();
  }
  if (first) settle();
  if (begins) begin_average(0, value_);
}

void VariableMemory::write(std::size_t array, std::size_t offset,
                           std::span<const std::byte> bytes) {
  before_change(0, value_.size());
  if (array == 0 && offset == 0) reset_slots();
  if (is_scalar(array)) {
    std::int64_t count = count_;
    std::memcpy(reinterpret_cast<std::byte*>(&count) + offset, bytes.data(), bytes.size());
    count_ = count;
    return;
  }
  const std::span<std::byte> to = array == 0 ? value_ : bytes_of(slots_[array - 1]);
  copy_bytes(to.data() + offset, bytes.data(), bytes.size());
  if (array == 0) begin_average(offset, bytes);
}

void VariableMemory::move_value(std::span<std::byte> to) {
  PACELINE_CHECK(written() && to.size() == value_.size());
  copy_bytes(to.data(), value_.data(), value_.size());
  own_value_ = {};
  value_ = to;
  settle();
}

VariableState VariableMemory::read(VariableId id) const {
  VariableState state{id, Tensor(spec_.dtype, shape_), {}};
  copy_bytes(state.value.raw(), value_.data(), value_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    state.slots.push_back(slot_specs_[i].scalar ? Tensor::of<std::int64_t>({1}, {count_})
                                                : slots_[i].clone());
  }
  return state;
}

void VariableMemory::copy_all(std::span<std::byte> bytes) const {
  const std::int64_t count = count_;
  for (std::size_t i = 0; i < arrays(); ++i) {
    const void* const from = is_scalar(i) ? &count : i == 0 ? value_.data() : slots_[i - 1].raw();
    copy_bytes(bytes.data(), from, array_bytes(i));
    bytes = bytes.subspan(array_bytes(i));
  }
}

std::span<const std::byte> VariableMemory::read_marked(std::size_t array, std::size_t offset,
                                                       std::size_t bytes) {
  if (is_scalar(array)) {
    return std::as_bytes(std::span(&snapshot_->count(), 1)).subspan(offset, bytes);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < array; ++i) kept += is_scalar(i) ? 0 : 1;
  return snapshot_->read(kept, offset, bytes);
}

RuleStep VariableMemory::begin_contribution(const UpdateScalars& scalars) {
  const std::int64_t count = next_count();
  return {scalars.learning_rate,          scalars.clip_scale,    spec_.weight_decay, count,
          average_decay_at(spec_, count), scalars.must_be_finite};
}

void VariableMemory::apply_range(const RuleStep& step, std::int64_t first,
                                 std::span<const float> gradient) {
  const std::size_t begin = std::size_t(first) * sizeof(float);
  before_change(begin, begin + gradient.size_bytes());
  std::array<float*, kMaxSlots> slots{};
  for (std::size_t i = 0; i < full_slots_.size(); ++i) slots[i] = full_slots_[i] + first;
  const std::size_t applied =
      apply_rule(spec_.rule, step,
                 {.values = {reinterpret_cast<float*>(value_.data() + begin), gradient.size()},
                  .slots = {slots.data(), full_slots_.size()},
                  .gradient = gradient});
  if (applied == gradient.size()) return;
  const std::int64_t before = first_row_ * std::int64_t(row_bytes_ / sizeof(float)) + first;
  check_finite(spec_.name, before + std::int64_t(applied), gradient.subspan(applied));
}

void VariableMemory::apply_row_range(const RuleStep& step, std::span<const std::int32_t> ids,
                                     const float* gradient) {
  const auto row_size = std::int64_t(row_bytes_ / sizeof(float));
  if (step.must_be_finite) check_rows_finite(spec_.name, ids, row_size, gradient);
  for (const std::int32_t id : ids) {
    const std::size_t begin = std::size_t(id - first_row_) * row_bytes_;
    before_change(begin, begin + row_bytes_);
  }
  // Row ids count from the first row of the whole variable, so the pointers stand where that row
  // would be. No element before this memory is touched, since a check has shown that every row lies
  // in this memory.
  const auto shifted = [&](void* data) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): no pointer may stand before its array
    return reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(data) -
                                    std::uintptr_t(first_row_) * row_bytes_);
  };
  std::array<float*, kMaxSlots> slots{};
  for (std::size_t i = 0; i < full_slots_.size(); ++i) slots[i] = shifted(full_slots_[i]);
  apply_rule_to_rows(spec_.rule, step,
                     {.values = shifted(value_.data()),
                      .slots = {slots.data(), full_slots_.size()},
                      .ids = ids,
                      .gradient = gradient,
                      .row_size = row_size});
}

void VariableMemory::apply_whole(const RuleStep& step, const float* gradient, ThreadPool& pool) {
  const auto [rows, columns] = extent_of(spec_);
  if (step.must_be_finite) check_finite(spec_.name, 0, {gradient, std::size_t(rows * columns)});
  before_change(0, value_.size());
  apply_rule_to_whole(spec_.rule, step,
                      {.values = reinterpret_cast<float*>(value_.data()),
                       .slots = full_slots_,
                       .gradient = gradient,
                       .rows = rows,
                       .columns = columns},
                      pool);
}

void VariableMemory::apply(const UpdateScalars& scalars, const float* gradient, ThreadPool* pool) {
  const RuleStep step = begin_contribution(scalars);
  if (spec_.rule.whole()) {
    ThreadPool alone(1);
    return apply_whole(step, gradient, pool != nullptr ? *pool : alone);
  }
  for_ranges(pool, shape_.elements(), kNumbersGrain, [&](std::int64_t begin, std::int64_t end) {
    apply_range(step, begin, {gradient + begin, std::size_t(end - begin)});
  });
}

void VariableMemory::apply_rows(const UpdateScalars& scalars, std::span<const std::int32_t> ids,
                                const float* gradient, ThreadPool* pool) {
  check_rows(ids);
  const RuleStep step = begin_contribution(scalars);
  const std::int64_t row_size = row_elements(spec_);
  const std::int64_t grain =
      std::max<std::int64_t>(1, kNumbersGrain / std::max<std::int64_t>(row_size, 1));
  for_ranges(pool, std::int64_t(ids.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    apply_row_range(step, ids.subspan(std::size_t(begin), std::size_t(end - begin)),
                    gradient + begin * row_size);
  });
}

void VariableMemory::check_rows(std::span<const std::int32_t> ids) const {
  const std::int64_t end = first_row_ + row_count(shape_);
  for (const std::int32_t id : ids) {
    if (id >= first_row_ && id < end) continue;
    refuse(spec_, fmt::format("row {} of a contribution is outside [{},{})", id, first_row_, end));
  }
}

}  // namespace paceline
