#include "kernels/cpu/vector_random.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_random.cc"
#include <hwy/foreach_target.h>  // must precede the code that Highway compiles for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The four words of each block lie in four vectors. A word has a 64-bit lane of its own, because
// products of words need all 64 bits.
template <class D>
struct PhiloxLanes {
  using V = hn::Vec<D>;
  V c0, c1, c2, c3;
};

template <class D, class V>
HWY_INLINE V times(D d, V word, std::uint32_t factor) {
  const hn::Repartition<std::uint32_t, D> words;
  return hn::MulEven(hn::BitCast(words, word), hn::BitCast(words, hn::Set(d, factor)));
}

template <class D>
HWY_INLINE PhiloxLanes<D> philox_at(D d, std::uint64_t key, std::uint64_t counter_low,
                                    std::uint64_t counter_high) {
  const auto low = hn::Set(d, 0xffffffffu);
  auto counter = hn::Add(hn::Iota(d, 0), hn::Set(d, counter_low));
  PhiloxLanes<D> c{hn::And(counter, low), hn::ShiftRight<32>(counter),
                   hn::Set(d, counter_high & 0xffffffffu), hn::Set(d, counter_high >> 32)};
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto p0 = times(d, c.c0, 0xD2511F53u), p1 = times(d, c.c2, 0xCD9E8D57u);
    c = {hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(c.c1, hn::Set(d, k0))), hn::And(p1, low),
         hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(c.c3, hn::Set(d, k1))), hn::And(p0, low)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

void Words(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high,
           std::size_t blocks, std::uint64_t* words) {
#if HWY_TARGET == HWY_SCALAR  // this target has no lanes of half the size
  for (std::size_t i = 0; i < blocks; ++i) {
    const PhiloxBlock block = philox(key, counter_low + i, counter_high);
    std::memcpy(words + 2 * i, block.data(), sizeof block);
  }
#else
  const hn::ScalableTag<std::uint64_t> d;
  for (std::size_t i = 0; i < blocks; i += hn::Lanes(d)) {
    const auto c = philox_at(d, key, counter_low + i, counter_high);
    hn::StoreInterleaved2(hn::Or(c.c0, hn::ShiftLeft<32>(c.c1)),
                          hn::Or(c.c2, hn::ShiftLeft<32>(c.c3)), d, words + 2 * i);
  }
#endif
}

// Converts as to_unit_float does, which is exact: 24 bits of the word, times a power of two.
void Drop(const std::uint32_t* words, float keep, float factor, const float* x, float* y,
          std::size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words + i)));
    const auto unit = hn::Mul(hn::ConvertTo(d, bits), hn::Set(d, 0x1p-24f));
    const auto kept = hn::Lt(unit, hn::Set(d, keep));
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor));
    hn::StoreU(hn::IfThenElseZero(kept, scaled), d, y + i);
  }
  for (; i < n; ++i) y[i] = to_unit_float(words[i]) < keep ? x[i] * factor : 0.0f;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(Words);
HWY_EXPORT(Drop);
}  // namespace

void vector_random_words(const RandomStream& stream, std::int64_t first, std::int64_t blocks,
                         std::uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(Words)
  (stream.key(), std::uint64_t(first), stream.high(), std::size_t(blocks),
   reinterpret_cast<std::uint64_t*>(words));
}

void vector_drop(const std::uint32_t* words, float keep, float factor, const float* x, float* y,
                 std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(Drop)(words, keep, factor, x, y, std::size_t(n));
}

}  // namespace paceline
#endif  // HWY_ONCE
