#include "kernels/cpu/gemm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/buffer.h"

namespace paceline {
namespace {

std::vector<float> numbers(std::int64_t n, float seed) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = float((i * 7 + std::size_t(seed)) % 11) - 5;
  }
  return values;
}

// The operands are small whole numbers, so that products are exact in any order.
void expect_product(const GemmShape& s, ThreadPool& pool) {
  const auto a = numbers((s.transpose_a ? s.k : s.m) * s.lda, 1);
  const auto b = numbers((s.transpose_b ? s.n : s.k) * s.ldb, 2);
  const auto before = numbers(s.m * s.ldc, 3);
  auto c = before;
  Gemm gemm(s, pool);
  const Buffer scratch(gemm.scratch_bytes()), packed(gemm.packed_bytes());
  if (s.packed_b) gemm.pack(b.data(), packed.span());
  const float* right = s.packed_b ? reinterpret_cast<const float*>(packed.data()) : b.data();
  gemm.run(a.data(), right, c.data(), scratch.span());
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.ldc; ++j) {
      const std::size_t at = std::size_t(i * s.ldc + j);
      float sum = s.accumulate || j >= s.n ? before[at] : 0;
      for (std::int64_t l = 0; l < s.k && j < s.n; ++l) {
        sum += a[std::size_t(s.transpose_a ? l * s.lda + i : i * s.lda + l)] *
               b[std::size_t(s.transpose_b ? j * s.ldb + l : l * s.ldb + j)];
      }
      ASSERT_EQ(c[at], sum) << "at " << i << "," << j;
    }
  }
}

// Tests each variant: transposed or not, accumulated or not. `ld` is lda and ldb; if it is 0, rows
// are contiguous.
void expect_all_variants(std::int64_t m, std::int64_t n, std::int64_t k, ThreadPool& pool,
                         std::int64_t ld = 0) {
  for (int variant = 0; variant < 8; ++variant) {
    GemmShape shape =
        GemmShape::packed(m, n, k, (variant & 1) != 0, (variant & 2) != 0, (variant & 4) != 0);
    if (ld > 0) shape.lda = shape.ldb = ld;
    expect_product(shape, pool);
  }
}

TEST(Gemm, TransposesAccumulatesAndCutsIntoTiles) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    expect_all_variants(150, 310, 61, pool);
    expect_all_variants(7, 5, 3, pool);
    expect_all_variants(3, 4, 0, pool);
  }
}

TEST(Gemm, MultipliesByAPackedOperand) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (int variant = 0; variant < 4; ++variant) {
      const bool tb = variant & 1, accumulate = variant & 2;
      for (GemmShape shape : {GemmShape::packed(20, 810, 200, false, tb, accumulate),
                              GemmShape::packed(150, 310, 61, false, tb, accumulate),
                              GemmShape::packed(7, 5, 3, false, tb, accumulate),
                              GemmShape::packed(3, 4, 0, false, tb, accumulate)}) {
        shape.packed_b = true;
        expect_product(shape, pool);
      }
    }
  }
}

TEST(Gemm, PartsOfWholeRowsRunByThemselves) {
  GemmShape shape = GemmShape::packed(21, 640, 200);
  shape.packed_b = true;
  ThreadPool pool(2);
  Gemm gemm(shape, pool);
  ASSERT_EQ(gemm.row_parts(), 2);
  const std::vector<float> a = numbers(21 * 200, 1), b = numbers(200 * 640, 2);
  const Buffer scratch(gemm.scratch_bytes()), packed(gemm.packed_bytes());
  gemm.pack(b.data(), packed.span());
  std::vector<float> whole(21 * 640), parts(21 * 640);
  gemm.run(a.data(), packed.data(), whole.data(), scratch.span());
  for (const std::int64_t part : {1, 0}) {
    const auto [first, end] = gemm.rows_of(part);
    EXPECT_EQ(first, part == 0 ? 0 : 10);
    EXPECT_EQ(end, part == 0 ? 10 : 21);
    gemm.run_rows(part, a.data() + first * 200, packed.data(), parts.data() + first * 640,
                  scratch.span());
  }
  EXPECT_EQ(parts, whole);
}

class CollectingSink : public OutputSink {
 public:
  explicit CollectingSink(std::int64_t elements) : values(std::size_t(elements)) {}
  void take(std::int64_t first, std::span<const float> range) override {
    std::ranges::copy(range, values.begin() + first);
    elements += std::int64_t(range.size());
  }
  std::vector<float> values;
  std::atomic<std::int64_t> elements{0};
};

TEST(Gemm, StreamsALargeWeightsGradientBitForBit) {
  const GemmShape shape = GemmShape::packed(2500, 2000, 5, true);
  std::vector<float> a = numbers(5 * 2500, 1), b = numbers(5 * 2000, 2);
  for (float& x : a) x = std::sin(x);
  for (float& x : b) x = std::cos(x);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Gemm gemm(shape, pool);
    ASSERT_TRUE(gemm.streams());
    std::vector<float> whole(std::size_t(shape.m * shape.n));
    const Buffer scratch(gemm.stream_scratch_bytes());
    gemm.run(a.data(), b.data(), whole.data(), scratch.span());
    CollectingSink sink(shape.m * shape.n);
    gemm.stream(a.data(), b.data(), sink, scratch.span());
    EXPECT_EQ(sink.elements, shape.m * shape.n);
    EXPECT_EQ(sink.values, whole);
  }
}

// Rows lie 2 or 4 KB apart in some operand. On some machines such operands are copied in blocks,
// and these have more than one block in each dimension.
TEST(Gemm, MultipliesOperandsWhoseRowsShareCacheSets) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    expect_all_variants(512, 512, 150, pool);
    expect_all_variants(30, 1024, 280, pool);
    expect_all_variants(300, 500, 61, pool, 512);
    GemmShape packed = GemmShape::packed(20, 1024, 256);
    packed.packed_b = true;
    expect_product(packed, pool);
  }
}

TEST(Gemm, RowsMayLieApart) {
  ThreadPool pool(3);
  GemmShape shape = GemmShape::packed(150, 310, 61);
  shape.lda = 70;
  shape.ldb = 320;
  shape.ldc = 313;
  expect_product(shape, pool);
}

TEST(Gemm, LeavesTheCallersOpenMpThreadsAlone) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(5);
  ThreadPool pool(1);
  expect_product(GemmShape::packed(9, 9, 9), pool);
  EXPECT_EQ(omp_get_max_threads(), 5);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace paceline
