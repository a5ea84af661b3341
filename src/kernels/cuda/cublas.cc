#include "kernels/cuda/cublas.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "paceline/error.h"

namespace paceline {
namespace {

using Lt = CublasCalls;

void check_lt(const Lt& calls, Lt::Status status, const char* what) {
  if (status == 0) return;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("cuBLASLt: {} failed: {}", what, calls.error_text(status)));
}

/// Owns an object of the library, and destroys it.
template <typename T>
using Owned = std::unique_ptr<T, Lt::Status (*)(T*)>;
template <typename T, typename... Arguments>
Owned<T> made(const Lt& calls, Lt::Status (*make)(T**, Arguments...), Lt::Status (*unmake)(T*),
              Arguments... arguments) {
  T* it = nullptr;
  check_lt(calls, make(&it, arguments...), "making a descriptor");
  return {it, unmake};
}

/// A matrix in the library's column-major order; columns lie `leading` elements apart.
struct Matrix {
  std::int64_t rows, columns, leading;
  bool transposed;  // the factor is the transpose of this matrix
};

// Describes the transpose of a factor (rows, columns) that lies in memory with the strides `row`
// and `column`, one of which is 1. A factor in row-major order is its transpose in column-major
// order.
Matrix transpose_of(std::int64_t rows, std::int64_t columns, std::int64_t row,
                    std::int64_t column) {
  if (column == 1 && row >= columns) return {columns, rows, row, false};
  return {rows, columns, column, true};
}

class ProductPlan : public CudaPlan {
 public:
  ProductPlan(const Lt& calls, Lt::Handle* handle, const CudaProduct& p, CudaEpilogue epilogue,
              bool tf32)
      : calls_(calls),
        handle_(handle),
        epilogue_(epilogue),
        adds_(p.adds != 0 ? 1.0f : 0.0f),
        product_(made(calls, calls.make_product, calls.destroy_product,
                      tf32 ? Lt::kTf32Compute : Lt::kCompute, Lt::kFloat)) {
    // The library computes cᵀ = bᵀ · aᵀ: the column-major transpose of c is c in row-major order.
    const Matrix b = transpose_of(p.k, p.n, p.b_row, p.b_column);
    const Matrix a = transpose_of(p.m, p.k, p.a_row, p.a_column);
    const int type = p.of_bfloat16 ? Lt::kBfloat16 : Lt::kFloat;
    first_ = layout(type, b, p.count, p.b_next);
    second_ = layout(type, a, p.count, p.a_next);
    result_ = layout(Lt::kFloat, {p.n, p.m, p.n, false}, p.count, p.c_next);
    set_product(Lt::kTransposeA, std::int32_t(b.transposed));
    set_product(Lt::kTransposeB, std::int32_t(a.transposed));
    if (epilogue == CudaEpilogue::kNone) return;
    // The bias has an element for each row of cᵀ, which is a column of c.
    set_product(Lt::kEpilogue, epilogue == CudaEpilogue::kBias ? Lt::kBias : Lt::kReluBias);
  }

  /// Asks the library for its best plan within the limits. Returns false if it has none.
  bool find(const CudaPlanLimits& limits) {
    // The library reads only the alignment of this address.
    if (epilogue_ != CudaEpilogue::kNone) bias_at(CudaCalls::Address(limits.alignment));
    const auto preference = made(calls_, calls_.make_preference, calls_.destroy_preference);
    const auto set = [&](int attribute, const auto& value) {
      check_lt(calls_, calls_.set_preference(preference.get(), attribute, &value, sizeof(value)),
               "a preference");
    };
    set(Lt::kMostWorkspace, std::uint64_t(limits.workspace_bytes));
    for (int operand = 0; operand < 4; ++operand) {
      set(Lt::kAlignmentOfA + operand, std::uint32_t(limits.alignment));
    }
    int count = 0;
    const Lt::Status status =
        calls_.find(handle_, product_.get(), first_.get(), second_.get(), result_.get(),
                    result_.get(), preference.get(), 1, &way_, &count);
    return status == 0 && count > 0 && way_.state == 0;
  }

  std::size_t workspace_bytes() const override { return way_.workspace_bytes; }

  void run(const CudaOperands& at, CudaCalls::Stream* stream) override {
    const float one = 1;
    const auto pointer = [](CudaCalls::Address address) { return std::bit_cast<void*>(address); };
    if (epilogue_ != CudaEpilogue::kNone) bias_at(at.bias);
    check_lt(calls_,
             calls_.multiply(handle_, product_.get(), &one, pointer(at.second), first_.get(),
                             pointer(at.first), second_.get(), &adds_, pointer(at.to),
                             result_.get(), pointer(at.to), result_.get(), &way_.algorithm,
                             pointer(at.workspace), way_.workspace_bytes, stream),
             "a product");
  }

 private:
  using Layout = Owned<Lt::Layout>;

  Layout layout(int type, const Matrix& m, std::int64_t count, std::int64_t next) {
    Layout layout = made(calls_, calls_.make_layout, calls_.destroy_layout, type,
                         std::uint64_t(m.rows), std::uint64_t(m.columns), m.leading);
    const auto set = [&](int attribute, const auto& value) {
      check_lt(calls_, calls_.set_layout(layout.get(), attribute, &value, sizeof(value)),
               "a layout");
    };
    if (count > 1) {
      set(Lt::kBatchCount, std::int32_t(count));
      set(Lt::kBatchStride, next);
    }
    return layout;
  }
  template <typename T>
  void set_product(int attribute, T value) {
    check_lt(calls_, calls_.set_product(product_.get(), attribute, &value, sizeof(value)),
             "an attribute of a product");
  }
  void bias_at(CudaCalls::Address address) {
    set_product(Lt::kBiasPointer, std::bit_cast<const void*>(address));
  }

  const Lt& calls_;
  Lt::Handle* const handle_;
  const CudaEpilogue epilogue_;
  const float adds_;
  Owned<Lt::Product> product_;
  Layout first_{nullptr, nullptr}, second_{nullptr, nullptr}, result_{nullptr, nullptr};
  Lt::Found way_{};
};

}  // namespace

Cublas::Cublas(const CublasCalls& calls) : calls_(calls) {
  check_lt(calls_, calls_.create(&handle_), "its start");
}

Cublas::~Cublas() { calls_.destroy(handle_); }

std::unique_ptr<CudaPlan> Cublas::plan(const CudaProduct& product, CudaEpilogue epilogue,
                                       const CudaPlanLimits& limits) const {
  auto plan = std::make_unique<ProductPlan>(calls_, handle_, product, epilogue,
                                            limits.tf32 && product.of_bfloat16 == 0);
  return plan->find(limits) ? std::move(plan) : nullptr;
}

}  // namespace paceline
