#include "kernels/cpu/vector_program.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_program.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must precede the code that Highway compiles for each target

#include <hwy/highway.h>

#include "base/cache_line.h"
#include "base/check.h"

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

constexpr std::size_t kLanes = hn::MaxLanes(Tag());
constexpr std::size_t kVectors = 8;  // in a group: half of AVX2's registers
constexpr std::size_t kGroup = kVectors * kLanes;
constexpr std::size_t kAhead = 2048 / sizeof(float);  // how far ahead memory is prefetched
constexpr std::size_t kMostPlaces = VectorProgram::kMostArrays + VectorProgram::kMostCells;

using Places = std::array<float*, kMostPlaces>;

struct ScaleBy {
  Vector n;
  HWY_INLINE Vector operator()(Vector a) const { return hn::Mul(a, n); }
};
struct SquareOf {
  HWY_INLINE Vector operator()(Vector a) const { return hn::Mul(a, a); }
};
struct RootOf {
  HWY_INLINE Vector operator()(Vector a) const { return hn::Sqrt(a); }
};
struct Plus {
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::Add(a, b); }
};
struct PlusScaled {
  Vector n;
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::MulAdd(b, n, a); }
};
struct Minus {
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::Sub(a, b); }
};
struct MinusScaled {
  Vector n;
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::NegMulAdd(b, n, a); }
};
struct Times {
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::Mul(a, b); }
};
struct Over {
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::Div(a, b); }
};
/// Calls the function with its operands exchanged.
template <typename F>
struct Exchanged {
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return F()(b, a); }
};

/// Some consecutive vectors. They stay in registers, because no index is variable.
template <std::size_t... k>
struct Group {
  static constexpr std::size_t kElements = sizeof...(k) * kLanes;
  Vector vectors[sizeof...(k)];

  HWY_INLINE void load(const float* x) { ((vectors[k] = hn::LoadU(Tag(), x + k * kLanes)), ...); }
  HWY_INLINE void store(float* x) const { (hn::StoreU(vectors[k], Tag(), x + k * kLanes), ...); }
  template <typename F>
  HWY_INLINE void apply(F f) {
    ((vectors[k] = f(vectors[k])), ...);
  }
  template <typename F>
  HWY_INLINE void apply(F f, const float* b) {
    ((vectors[k] = f(vectors[k], hn::LoadU(Tag(), b + k * kLanes))), ...);
  }
};
using OneVector = Group<0>;
using WholeGroup = Group<0, 1, 2, 3, 4, 5, 6, 7>;
static_assert(WholeGroup::kElements == kGroup);

HWY_NOINLINE void call_function(const VectorInstruction& of, const float* a, const Places& places,
                                float* y, std::size_t n) {
  compute_elements(of.function, of.number,
                   {{{a, false}, {places[of.b], false}, {places[of.c], false}}}, y,
                   std::int64_t(n));
}

template <typename Values>
HWY_INLINE void run_instruction(const VectorInstruction& of, const Places& places, Values& values) {
  const float* const b = places[of.b];
  const Vector n = hn::Set(Tag(), of.number);
  switch (of.op) {
    case VectorOp::kCopy:
      return;
    case VectorOp::kScale:
      return values.apply(ScaleBy{n});
    case VectorOp::kAdd:
      return values.apply(Plus(), b);
    case VectorOp::kAddScaled:
      return values.apply(PlusScaled{n}, b);
    case VectorOp::kSub:
      return values.apply(Minus(), b);
    case VectorOp::kSubScaled:
      return values.apply(MinusScaled{n}, b);
    case VectorOp::kSubFrom:
      return values.apply(Exchanged<Minus>(), b);
    case VectorOp::kMul:
      return values.apply(Times(), b);
    case VectorOp::kDiv:
      return values.apply(Over(), b);
    case VectorOp::kDivInto:
      return values.apply(Exchanged<Over>(), b);
    case VectorOp::kSquare:
      return values.apply(SquareOf());
    case VectorOp::kSqrt:
      return values.apply(RootOf());
    case VectorOp::kFunction: {
      HWY_ALIGN float y[Values::kElements];
      values.store(y);
      call_function(of, y, places, y, Values::kElements);
      return values.load(y);
    }
  }
}

template <typename Values>
HWY_INLINE void run_once(const VectorProgram& program, const Places& places) {
  Values values;
  values.load(places[0]);  // only initialises: the first instruction loads its own
  for (const VectorInstruction& each : program.instructions()) {
    if (each.a != VectorInstruction::kInRegisters) values.load(places[each.a]);
    run_instruction(each, places, values);
    if (each.result != VectorInstruction::kInRegisters) values.store(places[each.result]);
  }
}

void advance(Places& places, std::size_t arrays, std::size_t elements) {
  for (std::size_t i = 0; i < arrays; ++i) places[i] += elements;
}

// The last elements, fewer than a vector holds, go through the same code in a padded copy.
void run_rest(const VectorProgram& program, Places places, std::size_t n) {
  HWY_ALIGN float padded[VectorProgram::kMostArrays][kLanes] = {};
  const Places arrays = places;
  for (std::size_t i = 0; i < program.arrays(); ++i) {
    std::memcpy(padded[i], arrays[i], n * sizeof(float));
    places[i] = padded[i];
  }
  run_once<OneVector>(program, places);
  for (const VectorInstruction& each : program.instructions()) {
    if (each.result >= program.arrays()) continue;
    std::memcpy(arrays[each.result], padded[each.result], n * sizeof(float));
  }
}

void Run(const VectorProgram& program, float* const* arrays, std::size_t n) {
  HWY_ALIGN float cells[VectorProgram::kMostCells][kGroup];
  Places places;
  std::copy_n(arrays, program.arrays(), places.begin());
  for (std::size_t i = 0; i < program.cells().size(); ++i) {
    std::fill_n(cells[i], kGroup, program.cells()[i]);
    places[program.arrays() + i] = cells[i];
  }
  for (; n >= kGroup; n -= kGroup) {
    for (std::size_t i = 0; i < program.arrays(); ++i) {
      for (std::size_t k = 0; k < kGroup; k += kCacheLine / sizeof(float)) {
        hwy::Prefetch(places[i] + kAhead + k);
      }
    }
    run_once<WholeGroup>(program, places);
    advance(places, program.arrays(), kGroup);
  }
  for (; n >= kLanes; n -= kLanes) {
    run_once<OneVector>(program, places);
    advance(places, program.arrays(), kLanes);
  }
  if (n > 0) run_rest(program, places, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {
namespace {
HWY_EXPORT(Run);
}  // namespace

std::uint8_t VectorProgram::add_cell(float number) {
  PACELINE_CHECK(cell_count_ < kMostCells);
  cells_[cell_count_] = number;
  return std::uint8_t(arrays_ + cell_count_++);
}

VectorInstruction& VectorProgram::add(const VectorInstruction& instruction) {
  PACELINE_CHECK(instruction_count_ < kMostInstructions);
  return instructions_[instruction_count_++] = instruction;
}

void VectorProgram::run(std::span<float* const> arrays, std::size_t n) const {
  PACELINE_CHECK(arrays.size() == arrays_);
  HWY_DYNAMIC_DISPATCH(Run)(*this, arrays.data(), n);
}

}  // namespace paceline
#endif  // HWY_ONCE
