// Matrix products into float32 on plain row-major memory. oneDNN computes tiles, each on one
// thread, and a pool's threads claim the tiles.
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

/// The product C (m,n) = op(A) (m,k) · op(B) (k,n), or C plus this product. A transposed operand
/// lies in memory as (k,m) or (n,k). `ld*` are the elements from one row in memory to the next.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool accumulate = false;
  bool packed_b = false;             // B is packed by Gemm::pack; A is then not transposed
  DType operands = DType::kFloat32;  // of A and B; or kBFloat16 (see product_dtype)

  /// Strides in elements from one row, one column or one step of depth to the next.
  std::int64_t a_row() const { return transpose_a ? 1 : lda; }
  std::int64_t a_depth() const { return transpose_a ? lda : 1; }
  std::int64_t b_column() const { return transpose_b ? ldb : 1; }
  std::int64_t b_depth() const { return transpose_b ? 1 : ldb; }
  bool operator==(const GemmShape&) const = default;
  /// Returns the shape of a product of matrices whose rows follow one another without gaps.
  static GemmShape packed(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a = false,
                          bool transpose_b = false, bool accumulate = false);
};

/// Products of one shape. The pool must outlive the object. Only one call of run() or stream() may
/// be under way at a time. Any dimension may be 0. The rounding of a result depends only on the
/// shape, the pool's size and oneDNN's instruction set.
class Gemm {
 public:
  Gemm(const GemmShape& shape, ThreadPool& pool);
  ~Gemm();
  Gemm(Gemm&&) noexcept;
  Gemm& operator=(Gemm&&) noexcept;

  std::size_t scratch_bytes() const;
  /// Returns the bytes of the packed B; 0 if the shape does not ask for it.
  std::size_t packed_bytes() const;
  /// Copies B into the layout that is fastest to read. This is worthwhile if several runs share one
  /// B and have few rows each. `packed` has packed_bytes() bytes, 64-byte aligned; pass it to run
  /// as `b`.
  void pack(const void* b, std::span<std::byte> packed);
  /// `scratch` has scratch_bytes() bytes, 64-byte aligned. C may not overlap A or B.
  void run(const void* a, const void* b, float* c, std::span<std::byte> scratch);

  /// C may be cut into parts of whole rows, each of which one thread can compute alone. Returns the
  /// number of these parts; 1 if C is cut otherwise.
  std::int64_t row_parts() const;
  /// Returns the rows [first, second) of part i.
  std::pair<std::int64_t, std::int64_t> rows_of(std::int64_t part) const;
  /// Computes only the rows of this part. If there are several parts, the call runs on the calling
  /// thread, and calls for different parts may run at the same time. `a` and `c` begin with the
  /// part's first row.
  void run_rows(std::int64_t part, const void* a, const void* b, float* c,
                std::span<std::byte> scratch);

  /// True if C is computed in panels of whole rows, which stream() can hand over one by one.
  bool streams() const;
  std::size_t stream_scratch_bytes() const;
  /// Computes what run() computes, bit for bit, but passes C to the sink, panel by panel. The
  /// thread that computed a panel passes it on.
  void stream(const void* a, const void* b, OutputSink& sink, std::span<std::byte> scratch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
