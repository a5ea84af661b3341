// Update rules with Highway. Memory limits their speed: each rule is one pass over value, slots and
// gradient. The tail of a range goes through the same vector code in a padded copy, so an element's
// new value never depends on where its range begins or ends.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rules.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/cache_line.h"
#include "base/check.h"
#include "kernels/cpu/rule_bodies-inl.h"
#include "kernels/cpu/rule_numbers.h"
#include "kernels/cpu/rule_program_pass.h"
#include "kernels/finite.h"
#include "kernels/rule_kernel.h"

#ifndef PACELINE_KERNELS_CPU_RULE_FETCHES
#define PACELINE_KERNELS_CPU_RULE_FETCHES
namespace paceline {
// Zen 4 prefetches by itself what a pass over several arrays reads next, and explicit prefetches
// cost it a seventh of its rate. Zen 3 and Zen 5 gain a seventh from them.
inline bool fetches_blocks() {
  static const bool fetches = !(__builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f"));
  return fetches;
}
}  // namespace paceline
#endif

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

// While a pass computes a block of kBlock floats, it prefetches the next block of each array, in
// whole lines. This is faster than switching line by line between arrays, or between reads and
// writes (docs/performance-notes.md, Blocks).
constexpr std::size_t kFloatsPerLine = kCacheLine / sizeof(float);
constexpr std::size_t kBlock = 16 * kFloatsPerLine;

// Always inline: gcc removes calls of a function whose only effect is a prefetch.
HWY_INLINE void fetch_block(const float* block) {
  for (std::size_t i = 0; i < kBlock; i += kFloatsPerLine) hwy::Prefetch(block + i);
}

template <typename Body>
class Pass {
 public:
  explicit Pass(const RuleNumbers& n)
      : body_(n),
        clip_scale_(hn::Set(D(), n.clip_scale)),
        weight_decay_(hn::Set(D(), n.weight_decay)),
        average_decay_(hn::Set(D(), n.average_decay)),
        average_rest_(hn::Set(D(), float(1 - double(n.average_decay)))),
        decays_(n.weight_decay != 0),
        must_be_finite_(n.must_be_finite) {}

  // Returns the number of elements that were updated.
  std::size_t run(const RuleMemory& memory) const {
    PACELINE_CHECK(memory.slot_count == Body::kSlots || memory.slot_count == Body::kSlots + 1);
    const RuleMemory arrays = memory;  // no store can change this copy: it stays in registers
    const std::size_t whole = arrays.size - arrays.size % hn::Lanes(D());
    const bool fetches = fetches_blocks();
    std::size_t i = 0;
    for (; i + kBlock <= whole; i += kBlock) {
      if (fetches) fetch(arrays, i + kBlock);
      if (must_be_finite_ && !is_finite(arrays.gradient + i, kBlock)) return i;
      vectors(arrays, i, i + kBlock);
    }
    if (must_be_finite_ && !is_finite(arrays.gradient + i, arrays.size - i)) return i;
    vectors(arrays, i, whole);
    if (whole < memory.size) tail(memory, whole);
    return memory.size;
  }

 private:
  // An additional slot means that there is an average, even if the decay of the average is a
  // denormal, which counts as zero here.
  static float* average_of(const RuleMemory& memory) {
    return memory.slot_count > Body::kSlots ? memory.slots[Body::kSlots] : nullptr;
  }

  static HWY_INLINE void fetch(const RuleMemory& memory, std::size_t begin) {
    fetch_block(memory.gradient + begin);
    fetch_block(memory.values + begin);
    if (Body::kSlots > 0) fetch_block(memory.slots[0] + begin);
    if (Body::kSlots > 1) fetch_block(memory.slots[1] + begin);
    if (average_of(memory) != nullptr) fetch_block(average_of(memory) + begin);
  }

  // Returns whether all numbers are finite. This brings them into the cache, where the pass reads
  // them next.
  static HWY_INLINE bool is_finite(const float* numbers, std::size_t count) {
    const D d;
    const std::size_t lanes = hn::Lanes(d), whole = count - count % lanes;
    // Zero times a finite number is zero; zero times any other is NaN.
    V sum = hn::Zero(d), other = hn::Zero(d);
    std::size_t i = 0;
    for (; i + 2 * lanes <= whole; i += 2 * lanes) {
      sum = hn::MulAdd(hn::Zero(d), hn::LoadU(d, numbers + i), sum);
      other = hn::MulAdd(hn::Zero(d), hn::LoadU(d, numbers + i + lanes), other);
    }
    for (; i < whole; i += lanes) sum = hn::MulAdd(hn::Zero(d), hn::LoadU(d, numbers + i), sum);
    if (!hn::AllTrue(d, hn::Eq(hn::Add(sum, other), hn::Zero(d)))) return false;
    return first_not_finite({numbers + whole, count - whole}) == count - whole;
  }

  HWY_INLINE void vectors(const RuleMemory& memory, std::size_t begin, std::size_t end) const {
    float* const average = average_of(memory);
    const std::size_t lanes = hn::Lanes(D());
    for (std::size_t i = begin; i < end; i += lanes) {
      vector(memory.values + i, memory.slots[0] + i, memory.slots[1] + i,
             average == nullptr ? nullptr : average + i, memory.gradient + i);
    }
  }

  // Does not touch the slot arrays that the rule does not have.
  HWY_INLINE void vector(float* values, float* slot0, float* slot1, float* average,
                         const float* gradient) const {
    const D d;
    V w = hn::LoadU(d, values);
    V g = hn::LoadU(d, gradient);
    V s0 = Body::kSlots > 0 ? hn::LoadU(d, slot0) : w;
    V s1 = Body::kSlots > 1 ? hn::LoadU(d, slot1) : w;
    if (Body::kScaled) {
      g = hn::Mul(clip_scale_, g);
      if (decays_) g = hn::MulAdd(weight_decay_, w, g);
    }
    body_(w, s0, s1, g);
    hn::StoreU(w, d, values);
    if (Body::kSlots > 0) hn::StoreU(s0, d, slot0);
    if (Body::kSlots > 1) hn::StoreU(s1, d, slot1);
    if (average == nullptr) return;
    const V before = hn::LoadU(d, average);
    hn::StoreU(hn::MulAdd(average_decay_, before, hn::Mul(average_rest_, w)), d, average);
  }

  void tail(const RuleMemory& memory, std::size_t begin) const {
    constexpr std::size_t kLanes = hn::MaxLanes(D());
    const std::size_t bytes = (memory.size - begin) * sizeof(float);
    HWY_ALIGN float w[kLanes] = {}, s0[kLanes] = {}, s1[kLanes] = {}, g[kLanes] = {};
    HWY_ALIGN float average[kLanes] = {};
    const bool averages = average_of(memory) != nullptr;
    std::memcpy(w, memory.values + begin, bytes);
    std::memcpy(g, memory.gradient + begin, bytes);
    if (Body::kSlots > 0) std::memcpy(s0, memory.slots[0] + begin, bytes);
    if (Body::kSlots > 1) std::memcpy(s1, memory.slots[1] + begin, bytes);
    if (averages) std::memcpy(average, average_of(memory) + begin, bytes);
    vector(w, s0, s1, averages ? average : nullptr, g);
    std::memcpy(memory.values + begin, w, bytes);
    if (Body::kSlots > 0) std::memcpy(memory.slots[0] + begin, s0, bytes);
    if (Body::kSlots > 1) std::memcpy(memory.slots[1] + begin, s1, bytes);
    if (averages) std::memcpy(average_of(memory) + begin, average, bytes);
  }

  Body body_;
  V clip_scale_, weight_decay_, average_decay_, average_rest_;
  bool decays_, must_be_finite_;
};

template <typename Body>
std::size_t pass(const RuleNumbers& numbers, const RuleMemory& memory) {
  return Pass<Body>(numbers).run(memory);
}

// Copies the gradient to the values with streaming stores. These overwrite whole lines, so this
// core need not fetch the lines first, neither from memory nor from other cores that read them.
void stream(const RuleMemory& memory) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const float* const from = memory.gradient;
  float* const to = memory.values;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(to) / sizeof(float) % kFloatsPerLine;
  const std::size_t head = past == 0 ? 0 : kFloatsPerLine - past;
  std::memcpy(to, from, head * sizeof(float));
  const bool fetches = fetches_blocks();
  std::size_t i = head;
  for (; i + kBlock <= memory.size; i += kBlock) {
    if (fetches) fetch_block(from + i);
    for (std::size_t k = i; k < i + kBlock; k += lanes)
      hn::Stream(hn::LoadU(d, from + k), d, to + k);
  }
  hwy::FlushStream();
  std::memcpy(to + i, from + i, (memory.size - i) * sizeof(float));
}

// The fewest elements that are streamed. If there are fewer, this core soon reads them again, and
// then they should lie in its cache.
constexpr std::size_t kLeastStreamed = std::size_t{1} << 13;

std::size_t assign(const RuleNumbers& numbers, const RuleMemory& memory) {
  const bool streams = memory.slot_count == 0 && memory.size >= kLeastStreamed;
  if (!streams || numbers.must_be_finite) return pass<AssignBody>(numbers, memory);
  stream(memory);
  return memory.size;
}

std::size_t run_rule(RuleKind kind, const RuleNumbers& numbers, const RuleMemory& memory) {
  switch (kind) {
    case RuleKind::kSgd:
      return pass<SgdBody>(numbers, memory);
    case RuleKind::kMomentum:
      return pass<MomentumBody>(numbers, memory);
    case RuleKind::kAdam:
      return pass<AdamBody>(numbers, memory);
    case RuleKind::kAdamW:
      return pass<AdamwBody>(numbers, memory);
    case RuleKind::kAdagrad:
      return pass<AdagradBody>(numbers, memory);
    case RuleKind::kRmsprop:
      return pass<RmspropBody>(numbers, memory);
    case RuleKind::kFtrl:
      if (UnmovedFtrlBody::suits(numbers)) return pass<UnmovedFtrlBody>(numbers, memory);
      return pass<FtrlBody>(numbers, memory);
    case RuleKind::kDelayedNesterov:
      return pass<DelayedNesterovBody>(numbers, memory);
    case RuleKind::kEma:
      return pass<EmaBody>(numbers, memory);
    case RuleKind::kAdd:
      return pass<AddBody>(numbers, memory);
    case RuleKind::kAssign:
      return assign(numbers, memory);
    case RuleKind::kCustom:
      break;  // RuleProgramPass
  }
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {
namespace {

HWY_EXPORT(run_rule);

RuleMemory memory_of(float* values, std::span<float* const> slots, const float* gradient,
                     std::size_t size) {
  PACELINE_CHECK(slots.size() <= RuleMemory::kMostSlots);
  RuleMemory memory{values, {values, values, values, values}, slots.size(), gradient, size};
  std::ranges::copy(slots, memory.slots);
  return memory;
}

template <typename F>
void for_rows(const RuleRows& rows, F&& apply) {
  const std::size_t size = std::size_t(rows.row_size);
  RuleMemory row = memory_of(rows.values, rows.slots, rows.gradient, size);
  const RuleMemory whole = row;
  for (std::size_t r = 0; r < rows.ids.size(); ++r) {
    const std::size_t begin = std::size_t(rows.ids[r]) * size;
    row.values = whole.values + begin;
    for (std::size_t i = 0; i < whole.slot_count; ++i) row.slots[i] = whole.slots[i] + begin;
    row.gradient = rows.gradient + r * size;
    apply(row);
  }
}

}  // namespace

std::size_t apply_rule(const Rule& rule, const RuleStep& step, const RuleRange& range) {
  PACELINE_CHECK(range.values.size() == range.gradient.size() && !rule.whole());
  const RuleMemory memory =
      memory_of(range.values.data(), range.slots, range.gradient.data(), range.values.size());
  if (rule.program() == nullptr) {
    return HWY_DYNAMIC_DISPATCH(run_rule)(rule.kind(), rule_numbers(rule, step), memory);
  }
  const std::size_t applied = step.must_be_finite ? first_not_finite(range.gradient) : memory.size;
  RuleProgramPass(*rule.program(), step).run(memory.values, range.slots, memory.gradient, applied);
  return applied;
}

void apply_rule_to_rows(const Rule& rule, const RuleStep& step, const RuleRows& rows) {
  PACELINE_CHECK(rule.kind() != RuleKind::kEma && !rule.whole());
  if (rule.program() != nullptr) {
    const RuleProgramPass pass(*rule.program(), step);
    return for_rows(rows, [&](const RuleMemory& row) {
      pass.run(row.values, {row.slots, row.slot_count}, row.gradient, row.size);
    });
  }
  RuleNumbers numbers = rule_numbers(rule, step);
  numbers.must_be_finite = false;
  const auto run = HWY_DYNAMIC_DISPATCH(run_rule);
  for_rows(rows, [&](const RuleMemory& row) { run(rule.kind(), numbers, row); });
}

}  // namespace paceline
#endif
