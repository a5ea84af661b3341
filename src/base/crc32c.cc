#include "base/crc32c.h"

#include <array>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace paceline {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // the highest power is the last bit

/// Multiplies a polynomial of degree 31 at most by x.
constexpr std::uint32_t times_x(std::uint32_t polynomial) {
  return (polynomial >> 1) ^ ((polynomial & 1) != 0 ? kPolynomial : 0);
}

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = byte;
    for (int bit = 0; bit < 8; ++bit) table[byte] = times_x(table[byte]);
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t rest = ~before;
  for (const std::byte byte : bytes) rest = (rest >> 8) ^ kTable[(rest ^ std::uint8_t(byte)) & 255];
  return ~rest;
}

#ifdef __x86_64__

#define PACELINE_STREAMS_TARGET __attribute__((target("sse4.2,pclmul")))
#define PACELINE_VECTORS_TARGET __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

PACELINE_STREAMS_TARGET std::uint64_t remainder_of(std::span<const std::byte> bytes,
                                                   std::uint64_t rest) {
  for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t)))
    rest = _mm_crc32_u64(rest, word_at(bytes.data()));
  for (const std::byte byte : bytes) rest = _mm_crc32_u8(std::uint32_t(rest), std::uint8_t(byte));
  return rest;
}

/// Returns the remainder of x^(bits − 33): multiplying by it skips `bits` zero bits. The other 33
/// powers come by themselves: one because a product has 63 bits in a word of 64, and 32 from the
/// instruction (`past_zeros`), or because the factor lies in the lower half of a word (`folded`).
constexpr std::uint32_t factor_past(std::size_t bits) {
  std::uint32_t power = 0x80000000;  // x^0
  for (std::size_t bit = 33; bit < bits; ++bit) power = times_x(power);
  return power;
}

PACELINE_STREAMS_TARGET std::uint64_t past_zeros(std::uint64_t rest, std::uint32_t factor) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(std::int64_t(rest)),
                                               _mm_cvtsi64_si128(std::int64_t(factor)), 0);
  return _mm_crc32_u64(0, std::uint64_t(_mm_cvtsi128_si64(product)));
}

/// The processor begins one crc32 instruction in each cycle, and each takes three cycles, so three
/// streams of `kStream` bytes keep the unit busy. Removes all whole blocks of three streams from
/// the front of `bytes`.
template <std::size_t kStream>
PACELINE_STREAMS_TARGET std::uint64_t remainder_of_blocks(std::span<const std::byte>& bytes,
                                                          std::uint64_t rest) {
  constexpr std::uint32_t kPastOne = factor_past(8 * kStream);
  constexpr std::uint32_t kPastTwo = factor_past(16 * kStream);
  for (; bytes.size() >= 3 * kStream; bytes = bytes.subspan(3 * kStream)) {
    std::uint64_t second = 0, third = 0;
    const std::byte* const end = bytes.data() + kStream;
    for (const std::byte* at = bytes.data(); at < end; at += sizeof(std::uint64_t)) {
      rest = _mm_crc32_u64(rest, word_at(at));
      second = _mm_crc32_u64(second, word_at(at + kStream));
      third = _mm_crc32_u64(third, word_at(at + 2 * kStream));
    }
    rest = past_zeros(rest, kPastTwo) ^ past_zeros(second, kPastOne) ^ third;
  }
  return rest;
}

PACELINE_STREAMS_TARGET std::uint32_t crc32c_by_streams(std::span<const std::byte> bytes,
                                                        std::uint32_t before) {
  std::uint64_t rest = ~before;
  rest = remainder_of_blocks<2048>(bytes, rest);
  rest = remainder_of_blocks<128>(bytes, rest);
  return ~std::uint32_t(remainder_of(bytes, rest));
}

/// Factors that move two words past `bits` zero bits: `second` is for the second word, and `first`
/// for the first word, which moves past 64 bits more.
struct Fold {
  constexpr explicit Fold(std::size_t bits)
      : first(factor_past(bits + 64)), second(factor_past(bits)) {}
  std::int64_t first, second;
};

PACELINE_VECTORS_TARGET __m128i folded(__m128i value, __m128i next, Fold fold) {
  const __m128i factors = _mm_set_epi64x(fold.second, fold.first);
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(value, factors, 0x00),
                                     _mm_clmulepi64_si128(value, factors, 0x11)),
                       next);
}

/// Folds each of the four 128-bit lanes.
PACELINE_VECTORS_TARGET __m512i folded(__m512i value, __m512i next, Fold fold) {
  const __m512i factors = _mm512_set4_epi64(fold.second, fold.first, fold.second, fold.first);
  const __m512i products = _mm512_xor_si512(_mm512_clmulepi64_epi128(value, factors, 0x00),
                                            _mm512_clmulepi64_epi128(value, factors, 0x11));
  return _mm512_xor_si512(products, next);
}

/// Returns the remainder of 64 bytes into which all bytes before them are folded.
PACELINE_VECTORS_TARGET std::uint64_t remainder_of(__m512i value) {
  constexpr Fold kPast128{128};
  alignas(64) __m128i parts[4];
  _mm512_store_si512(parts, value);
  __m128i one = parts[0];
  for (int i = 1; i < 4; ++i) one = folded(one, parts[i], kPast128);
  const std::uint64_t first = _mm_crc32_u64(0, std::uint64_t(_mm_extract_epi64(one, 0)));
  return _mm_crc32_u64(first, std::uint64_t(_mm_extract_epi64(one, 1)));
}

PACELINE_VECTORS_TARGET __m512i take_vector(const std::byte*& at) {
  const __m512i vector = _mm512_loadu_si512(at);
  at += sizeof vector;
  return vector;
}

/// Folds 256 bytes over the next 256, and so on ("Fast CRC Computation for Generic Polynomials
/// Using PCLMULQDQ Instruction", Intel, 2009).
PACELINE_VECTORS_TARGET std::uint32_t crc32c_by_vectors(std::span<const std::byte> bytes,
                                                        std::uint32_t before) {
  constexpr std::size_t kVector = sizeof(__m512i), kBlock = 4 * kVector;
  constexpr Fold kPastBlock{8 * kBlock}, kPastVector{8 * kVector};
  std::uint64_t rest = ~before;
  if (bytes.size() < kBlock) return ~std::uint32_t(remainder_of(bytes, rest));
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  const __m512i before_first = _mm512_zextsi128_si512(_mm_cvtsi64_si128(std::int64_t(rest)));
  __m512i first = _mm512_xor_si512(take_vector(at), before_first);
  __m512i second = take_vector(at), third = take_vector(at), fourth = take_vector(at);
  while (std::size_t(end - at) >= kBlock) {
    first = folded(first, take_vector(at), kPastBlock);
    second = folded(second, take_vector(at), kPastBlock);
    third = folded(third, take_vector(at), kPastBlock);
    fourth = folded(fourth, take_vector(at), kPastBlock);
  }
  __m512i value =
      folded(folded(folded(first, second, kPastVector), third, kPastVector), fourth, kPastVector);
  while (std::size_t(end - at) >= kVector) value = folded(value, take_vector(at), kPastVector);
  return ~std::uint32_t(remainder_of({at, end}, remainder_of(value)));
}

bool has_streams() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"); }
bool has_vectors() {
  return has_streams() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

constexpr Crc32cMethod kMethods[] = {{"table", crc32c_by_table},
                                     {"sse4.2, pclmul", crc32c_by_streams},
                                     {"avx512f, vpclmulqdq", crc32c_by_vectors}};

#else

bool has_streams() { return false; }
bool has_vectors() { return false; }

constexpr Crc32cMethod kMethods[] = {{"table", crc32c_by_table}};

#endif

}  // namespace

std::span<const Crc32cMethod> crc32c_methods() {
  return std::span(kMethods).first(has_vectors() ? 3 : has_streams() ? 2 : 1);
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  static const auto compute = crc32c_methods().back().compute;
  return compute(bytes, before);
}

}  // namespace paceline
