// Matrix products into float32 on plain row-major memory: oneDNN computes tiles, each on one
// thread, and the threads of a pool claim them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/thread_pool.h"
#include "paceline/op.h"
#include "paceline/tensor.h"

namespace paceline {

/// C (m,n) = op(A) (m,k) · op(B) (k,n), or C += it. A transposed operand lies as (k,m) or (n,k).
/// `ld*`: elements from one row in memory to the next.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool accumulate = false;
  bool packed_b = false;             // B is given as Gemm::pack made it; A is not transposed then
  DType operands = DType::kFloat32;  // of A and B; or kBFloat16, see product_dtype

  /// Elements from one row, or column, or step of depth to the next.
  std::int64_t a_row() const { return transpose_a ? 1 : lda; }
  std::int64_t a_depth() const { return transpose_a ? lda : 1; }
  std::int64_t b_column() const { return transpose_b ? ldb : 1; }
  std::int64_t b_depth() const { return transpose_b ? 1 : ldb; }
  bool operator==(const GemmShape&) const = default;
  /// With rows that lie next to each other.
  static GemmShape packed(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a = false,
                          bool transpose_b = false, bool accumulate = false);
};

/// Made once for a shape; the pool must outlive it. One call of run at a time. Any dimension may
/// be 0. Which rounding a result has depends on the shape, the pool's size and oneDNN's instruction
/// set only.
class Gemm {
 public:
  Gemm(const GemmShape& shape, ThreadPool& pool);
  ~Gemm();
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;

  std::size_t scratch_bytes() const;
  /// Returns the bytes that B takes when packed; 0 when the shape does not ask for it.
  std::size_t packed_bytes() const;
  /// Copies B into the layout that is read fastest: worth it where several runs share one B and
  /// have few rows each. `packed`: packed_bytes() of memory, 64-byte aligned; then run's `b`.
  void pack(const void* b, std::span<std::byte> packed);
  /// `scratch`: scratch_bytes() of memory, 64-byte aligned. C may not overlap A or B.
  void run(const void* a, const void* b, float* c, std::span<std::byte> scratch);

  /// Parts of whole rows, each of which a thread can make by itself; 1 where C is cut otherwise.
  std::int64_t row_parts() const;
  /// The rows [first, second) of part i.
  std::pair<std::int64_t, std::int64_t> rows_of(std::int64_t part) const;
  /// As run, but only these rows, on the calling thread when there are several parts, which may
  /// run at the same time. `a` and `c` begin with the part's first row.
  void run_rows(std::int64_t part, const void* a, const void* b, float* c,
                std::span<std::byte> scratch);

  /// True when C is made in panels of whole rows, which stream() hands over one by one.
  bool streams() const;
  std::size_t stream_scratch_bytes() const;
  /// As run, bit for bit, but C goes to the sink, panel by panel, from the threads that made it.
  void stream(const void* a, const void* b, OutputSink& sink, std::span<std::byte> scratch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
