#include "params/shard/variable_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "paceline/error.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

// A range this long takes some microseconds, as long as waking a thread for it.
constexpr std::int64_t kGrain = 16 * 1024;

constexpr std::size_t kMostSlots = 4;

[[noreturn]] void refuse(const VariableSpec& spec, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("[variable {}] {}", spec.name, why));
}

void expect_type(const VariableSpec& spec, const std::string& what, const Tensor& tensor,
                 DType dtype, const Shape& shape) {
  if (tensor.defined() && tensor.dtype() == dtype && tensor.shape() == shape) return;
  refuse(spec, fmt::format("{} is {} {}, not {} {}", what, name_of(tensor.dtype()),
                           tensor.shape().str(), name_of(dtype), shape.str()));
}

// Keeps the memory when there is some already: a step may hold a view of it.
void put_into(Tensor& target, Tensor source) {
  if (!target.defined()) {
    target = source.shared() ? source.clone() : std::move(source);
  } else if (source.bytes() > 0) {
    std::memmove(target.raw(), source.raw(), source.bytes());
  }
}

Tensor initial_slot(const SlotSpec& slot, const Shape& shape) {
  if (slot.scalar) return Tensor::of<std::int64_t>({1}, {std::int64_t(slot.initial)});
  Tensor tensor(DType::kFloat32, shape);
  std::ranges::fill(tensor.data<float>(), slot.initial);
  return tensor;
}

template <typename F>
void for_ranges(ThreadPool* pool, std::int64_t n, std::int64_t grain, F&& function) {
  if (pool == nullptr) return function(std::int64_t{0}, n);
  pool->parallel_for(n, grain, function);
}

}  // namespace

VariableMemory::VariableMemory(VariableSpec spec) : spec_(std::move(spec)) {
  if (spec_.sparse && spec_.shape.rank() < 1) refuse(spec_, "a scalar has no rows");
  if (!spec_.trained) return;
  if (spec_.dtype != DType::kFloat32) {
    refuse(spec_, fmt::format("rules are for float32, not {}", name_of(spec_.dtype)));
  }
  if (spec_.sparse && spec_.rule.kind() == RuleKind::kEma) {
    refuse(spec_, "rule ema cannot be applied by rows");
  }
  slot_specs_ = slots_of(spec_);
  PACELINE_CHECK(slot_specs_.size() <= kMostSlots);
}

void VariableMemory::write(VariableState state) {
  expect_type(spec_, "its value", state.value, spec_.dtype, spec_.shape);
  if (!state.slots.empty() && state.slots.size() != slot_specs_.size()) {
    refuse(spec_, fmt::format("{} slots given, {} are kept by its rule {}", state.slots.size(),
                              slot_specs_.size(), spec_.rule.name()));
  }
  const bool begins = state.slots.empty();
  write_slots(std::move(state.slots));
  put_into(value_, std::move(state.value));
  if (begins && has_average(spec_)) put_into(slots_.back(), value_);
}

void VariableMemory::write_slots(std::vector<Tensor> slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool scalar = slot_specs_[i].scalar;
    expect_type(spec_, "slot " + slot_specs_[i].name, slots[i],
                scalar ? DType::kInt64 : DType::kFloat32, scalar ? Shape{1} : spec_.shape);
  }
  slots_.resize(slot_specs_.size());
  full_slots_.clear();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    put_into(slots_[i],
             slots.empty() ? initial_slot(slot_specs_[i], spec_.shape) : std::move(slots[i]));
    if (slot_specs_[i].scalar) {
      count_ = slots_[i].data<std::int64_t>().data();
    } else {
      full_slots_.push_back(slots_[i].data<float>().data());
    }
  }
}

VariableState VariableMemory::read(VariableId id) const {
  VariableState state{id, value_.clone(), {}};
  for (const Tensor& slot : slots_) state.slots.push_back(slot.clone());
  return state;
}

std::int64_t VariableMemory::next_count() { return count_ == nullptr ? 1 : ++*count_; }

RuleStep VariableMemory::begin_contribution(const UpdateScalars& scalars) {
  return {scalars.learning_rate, scalars.clip_scale, spec_.weight_decay, next_count(),
          spec_.average_decay};
}

void VariableMemory::make_room() {
  if (snapshot_ == nullptr) {
    std::vector<std::span<const std::byte>> arrays = {
        {static_cast<const std::byte*>(value_.raw()), value_.bytes()}};
    for (const Tensor& slot : slots_) {
      if (slot.dtype() == DType::kInt64) continue;
      arrays.emplace_back(static_cast<const std::byte*>(slot.raw()), slot.bytes());
    }
    snapshot_ = std::make_unique<CopyOnWriteSnapshot>(std::move(arrays));
  }
  snapshot_->make_room();
}

void VariableMemory::mark() {
  make_room();
  snapshot_->mark(count_ == nullptr ? 0 : *count_);
}

void VariableMemory::apply_range(const RuleStep& step, std::int64_t first,
                                 std::span<const float> gradient) {
  if (snapshot_ != nullptr) {
    const std::size_t begin = std::size_t(first) * sizeof(float);
    snapshot_->before_change(begin, begin + gradient.size_bytes());
  }
  float* const values = static_cast<float*>(value_.raw()) + first;
  std::array<float*, kMostSlots> slots{};
  for (std::size_t i = 0; i < full_slots_.size(); ++i) slots[i] = full_slots_[i] + first;
  apply_rule(spec_.rule, step,
             {{values, gradient.size()}, {slots.data(), full_slots_.size()}, gradient});
}

void VariableMemory::apply(const UpdateScalars& scalars, const float* gradient, ThreadPool* pool) {
  const RuleStep step = begin_contribution(scalars);
  for_ranges(pool, value_.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    apply_range(step, begin, {gradient + begin, std::size_t(end - begin)});
  });
}

void VariableMemory::apply_rows(const UpdateScalars& scalars, std::span<const std::int32_t> ids,
                                const float* gradient, ThreadPool* pool) {
  check_rows(ids);
  const RuleStep step = begin_contribution(scalars);
  const std::int64_t row_size = spec_.shape[0] == 0 ? 0 : value_.elements() / spec_.shape[0];
  const std::int64_t grain =
      std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(row_size, 1));
  float* const values = static_cast<float*>(value_.raw());
  for_ranges(pool, std::int64_t(ids.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    const auto rows = ids.subspan(std::size_t(begin), std::size_t(end - begin));
    keep_rows(rows, std::size_t(row_size) * sizeof(float));
    apply_rule_to_rows(spec_.rule, step,
                       {values, full_slots_, rows, gradient + begin * row_size, row_size});
  });
}

void VariableMemory::keep_rows(std::span<const std::int32_t> ids, std::size_t row_bytes) {
  if (snapshot_ == nullptr) return;
  for (const std::int32_t id : ids) {
    const std::size_t begin = std::size_t(id) * row_bytes;
    snapshot_->before_change(begin, begin + row_bytes);
  }
}

void VariableMemory::check_rows(std::span<const std::int32_t> ids) const {
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= spec_.shape[0]) {
      refuse(spec_, fmt::format("row {} of a contribution is outside [0,{})", id, spec_.shape[0]));
    }
  }
}

}  // namespace paceline
