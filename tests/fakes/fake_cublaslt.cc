// libcublasLt.so.13 for tests. It computes the products that descriptors describe on the fake
// driver's device. It refuses a product whose layouts do not fit each other, or reach beyond a
// block of memory. With $FAKE_CUBLASLT_PLAIN set, it has no plans for products with a bias.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/fakes/fake_library.h"

namespace {

enum Status : int { kSuccess = 0, kInvalidValue = 7, kNotSupported = 15, kExecutionFailed = 13 };
constexpr int kFloat = 0, kBfloat16 = 14, kCompute = 68, kTf32Compute = 77;
constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8;
constexpr int kBatchCount = 5, kBatchStride = 6;
constexpr std::uint32_t kNone = 1, kRelu = 2, kBias = 4;  // epilogues
constexpr std::size_t kWorkspace = 512;                   // bytes that a product overwrites

struct Product {
  int compute = 0;
  bool transposes[2] = {false, false};
  std::uint32_t epilogue = kNone;
  bool has_no_plan = false;
  const float* bias = nullptr;

  /// Applies the epilogue to an element of row `row`. The bias has an element for each row.
  float finished(float x, std::int64_t row) const {
    if ((epilogue & kBias) != 0) x += bias[row];
    return (epilogue & kRelu) != 0 && x < 0 ? 0 : x;
  }
};
struct Layout {
  int type = 0;
  std::int64_t rows = 0, columns = 0, leading = 0, count = 1, stride = 0;

  std::size_t element() const { return type == kBfloat16 ? 2 : 4; }
  std::size_t bytes() const {
    return std::size_t((count - 1) * stride + (columns - 1) * leading + rows) * element();
  }
};
struct Preference {
  std::map<int, std::uint64_t> values;
};
struct Found {
  std::uint64_t data[8];
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

// Returns element [row, column] of op(m), for the matrix number `each` of a batch.
float element(const Layout& m, const void* data, bool transposed, std::int64_t each,
              std::int64_t row, std::int64_t column) {
  if (transposed) std::swap(row, column);
  const std::int64_t at = each * m.stride + column * m.leading + row;
  if (m.type == kFloat) return static_cast<const float*>(data)[at];
  return std::bit_cast<float>(std::uint32_t(static_cast<const std::uint16_t*>(data)[at]) << 16);
}

struct Sizes {
  std::int64_t rows, columns, inner;
};
bool fit(const Product& p, const Layout& a, const Layout& b, const Layout& d, Sizes& sizes) {
  const auto rows = [](const Layout& m, bool turned) { return turned ? m.columns : m.rows; };
  sizes = {d.rows, d.columns, rows(a, !p.transposes[0])};
  for (const Layout* const m : {&a, &b, &d}) {
    if (m->leading < m->rows || m->count != d.count || m->rows < 1 || m->columns < 1) return false;
  }
  return rows(a, p.transposes[0]) == sizes.rows && rows(b, p.transposes[1]) == sizes.inner &&
         rows(b, !p.transposes[1]) == sizes.columns && d.type == kFloat && a.type == b.type;
}

int set_of(void* to, const void* value, std::size_t bytes, std::size_t expected) {
  if (bytes != expected) return kInvalidValue;
  std::memcpy(to, value, bytes);
  return kSuccess;
}

}  // namespace

extern "C" {

const char* cublasLtGetStatusString(int status) {
  return status == kInvalidValue      ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == kNotSupported    ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == kExecutionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                      : "CUBLAS_STATUS_SUCCESS";
}
int cublasLtCreate(void** handle) {
  static int only;
  *handle = &only;
  return kSuccess;
}
int cublasLtDestroy(void*) { return kSuccess; }

int cublasLtMatmulDescCreate(Product** product, int compute, int) {
  if (compute != kCompute && compute != kTf32Compute) return kNotSupported;
  *product = new Product;
  (*product)->compute = compute;
  return kSuccess;
}
int cublasLtMatmulDescDestroy(Product* product) {
  delete product;
  return kSuccess;
}
int cublasLtMatmulDescSetAttribute(Product* product, int attribute, const void* value,
                                   std::size_t bytes) {
  std::int32_t transposes = 0;
  if (attribute == kBiasPointer) return set_of(&product->bias, value, bytes, sizeof(void*));
  if (attribute == kEpilogue) {
    if (std::getenv("FAKE_CUBLASLT_PLAIN") != nullptr) product->has_no_plan = true;
    const int status = set_of(&product->epilogue, value, bytes, sizeof(std::uint32_t));
    return product->epilogue == kBias || product->epilogue == (kBias | kRelu) ? status
                                                                              : kNotSupported;
  }
  if (attribute != kTransposeA && attribute != kTransposeB) return kNotSupported;
  const int status = set_of(&transposes, value, bytes, sizeof(transposes));
  product->transposes[attribute == kTransposeB] = transposes != 0;
  return status;
}

int cublasLtMatrixLayoutCreate(Layout** layout, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t leading) {
  *layout = new Layout{type, std::int64_t(rows), std::int64_t(columns), leading};
  return kSuccess;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return kSuccess;
}
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value,
                                     std::size_t bytes) {
  std::int32_t count = 0;
  if (attribute == kBatchStride) {
    return set_of(&layout->stride, value, bytes, sizeof(layout->stride));
  }
  if (attribute != kBatchCount) return kNotSupported;
  const int status = set_of(&count, value, bytes, sizeof(count));
  layout->count = count;
  return status;
}

int cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = new Preference;
  return kSuccess;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return kSuccess;
}
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value,
                                         std::size_t bytes) {
  if (bytes > sizeof(std::uint64_t)) return kInvalidValue;
  std::memcpy(&preference->values[attribute], value, bytes);
  return kSuccess;
}

int cublasLtMatmulAlgoGetHeuristic(void*, Product* product, Layout* a, Layout* b, Layout*,
                                   Layout* d, Preference*, int, Found* found, int* count) {
  Sizes sizes{};
  if (!fit(*product, *a, *b, *d, sizes)) return kInvalidValue;
  if (product->has_no_plan) return kNotSupported;
  *found = {};
  found->workspace_bytes = kWorkspace;
  *count = 1;
  return kSuccess;
}

int cublasLtMatmul(void*, Product* product, const void*, const void* a, Layout* of_a, const void* b,
                   Layout* of_b, const void* beta, const void*, Layout*, void* d, Layout* of_d,
                   const void*, void* workspace, std::size_t bytes, void* stream) {
  using paceline::testing::fake_gpu_holds;
  Sizes sizes{};
  if (!fit(*product, *of_a, *of_b, *of_d, sizes)) return kInvalidValue;
  if (!fake_gpu_holds(a, of_a->bytes()) || !fake_gpu_holds(b, of_b->bytes()) ||
      !fake_gpu_holds(d, of_d->bytes()) || bytes < kWorkspace ||
      !fake_gpu_holds(workspace, bytes) ||
      ((product->epilogue & kBias) != 0 &&
       !fake_gpu_holds(product->bias, std::size_t(of_d->rows) * sizeof(float)))) {
    return kExecutionFailed;
  }
  const auto work = [=, p = *product, of_a = *of_a, of_b = *of_b, of_d = *of_d,
                     adds = *static_cast<const float*>(beta)] {
    std::memset(workspace, 0xff, bytes);
    for (std::int64_t each = 0; each < of_d.count; ++each) {
      for (std::int64_t column = 0; column < sizes.columns; ++column) {
        for (std::int64_t row = 0; row < sizes.rows; ++row) {
          float sum = 0;
          for (std::int64_t k = 0; k < sizes.inner; ++k) {
            sum = std::fma(element(of_a, a, p.transposes[0], each, row, k),
                           element(of_b, b, p.transposes[1], each, k, column), sum);
          }
          float& to = static_cast<float*>(d)[each * of_d.stride + column * of_d.leading + row];
          to = p.finished(adds == 0 ? sum : adds * to + sum, row);
        }
      }
    }
  };
  return paceline::testing::push_on_fake_gpu(stream, work) == 0 ? kSuccess : kExecutionFailed;
}

}  // extern "C"
