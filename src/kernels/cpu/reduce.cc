// Sums, means and maxima in float32 over neighbouring axes: x (K,R,C) → y (K,C). The naive kernel
// handles other axes.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/ranking.h"
#include "ops/reduced_shape.h"
#include "paceline/op.h"

namespace paceline {

namespace {

constexpr std::int64_t kReduceGrain = 16 * 1024;
// The rows of a block. A block is summed in float32, and the sums of blocks in double, so that even
// a long column loses no more digits than one block.
constexpr std::int64_t kRowsOfBlock = 256;

struct Extents {
  std::int64_t outer = 1, reduced = 1, inner = 1;
};

/// Returns nothing if reduced and kept axes alternate more often than (kept, reduced, kept).
std::optional<Extents> extents_of(const Node& node) {
  const Shape& x = node.input(0).shape();
  const std::vector<bool> reduced = reduced_axes(node.attributes(), x.rank());
  Extents extents;
  std::int64_t* part = &extents.outer;
  for (int d = 0; d < x.rank(); ++d) {
    if (x[d] == 1) continue;
    if (reduced[std::size_t(d)]) {
      if (part == &extents.inner) return std::nullopt;
      part = &extents.reduced;
    } else if (part == &extents.reduced) {
      part = &extents.inner;
    }
    *part *= x[d];
  }
  return extents;
}

class ReduceKernel : public Kernel {
 public:
  ReduceKernel(const Node& node, const Extents& extents, ThreadPool& pool)
      : extents_(extents), max_(node.op().name == "reduce_max"), pool_(pool) {
    if (node.op().name == "reduce_mean") factor_ = 1 / float(extents.reduced);
  }

  /// Returns the bytes for a result of each piece if there is only one row, or for a sum of each
  /// long column. Pieces do not depend on the number of threads.
  std::size_t scratch_bytes() const override {
    const std::int64_t sums = extents_.inner == 1  ? pieces()
                              : has_long_columns() ? extents_.outer * extents_.inner
                                                   : 0;
    return std::size_t(sums) * sizeof(double);
  }

  void run(const KernelCall& call) override {
    if (call.outputs[0].shape.elements() == 0) return;
    const float* x = call.inputs[0].as<float>();
    float* y = call.outputs[0].as<float>();
    if (extents_.inner > 1) {
      run_columns(x, y, reinterpret_cast<double*>(call.scratch.data()));
    } else if (extents_.outer == 1) {
      run_one_row(x, y, reinterpret_cast<double*>(call.scratch.data()));
    } else {
      run_rows(x, y);
    }
  }

 private:
  bool has_long_columns() const { return !max_ && extents_.reduced > kRowsOfBlock; }
  std::int64_t pieces() const {
    return extents_.outer > 1 ? 0 : (extents_.reduced + kReduceGrain - 1) / kReduceGrain;
  }

  double reduce(const float* x, std::int64_t n) const {
    if (!max_) return vector_sum(x, n);
    return n > 0 ? double(vector_max(x, n)) : -std::numeric_limits<double>::infinity();
  }

  void run_one_row(const float* x, float* y, double* results) {
    auto tile = [&](std::int64_t i) {
      results[i] =
          reduce(x + i * kReduceGrain, std::min(kReduceGrain, extents_.reduced - i * kReduceGrain));
    };
    pool_.run_tiles(pieces(), TileFunction(tile));
    double result = max_ ? -std::numeric_limits<double>::infinity() : 0;
    for (std::int64_t i = 0; i < pieces(); ++i) {
      result = max_ ? larger(result, results[i]) : result + results[i];
    }
    *y = float(result * double(factor_));
  }

  void run_rows(const float* x, float* y) {
    const std::int64_t n = extents_.reduced;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kReduceGrain / std::max<std::int64_t>(1, n));
    pool_.parallel_for(extents_.outer, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        y[k] = float(reduce(x + k * n, n) * double(factor_));
      }
    });
  }

  // Tiles are ranges of columns, at least a few cache lines wide.
  void run_columns(const float* x, float* y, double* sums) {
    const std::int64_t grain =
        std::max<std::int64_t>(64, kReduceGrain / std::max<std::int64_t>(1, extents_.reduced));
    pool_.parallel_for(
        extents_.outer * extents_.inner, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end;) {
            const std::int64_t k = i / extents_.inner, c = i % extents_.inner;
            const std::int64_t n = std::min(extents_.inner - c, end - i);
            const float* const columns = x + k * extents_.reduced * extents_.inner + c;
            if (has_long_columns()) {
              sum_long_columns(columns, y + i, sums + i, n);
            } else {
              reduce_columns(columns, extents_.reduced, y + i, n);
              if (factor_ != 1) vector_unary(UnaryFunction::kScale, factor_, y + i, y + i, n);
            }
            i += n;
          }
        });
  }

  void reduce_columns(const float* x, std::int64_t rows, float* y, std::int64_t n) const {
    std::fill(y, y + n, max_ ? -std::numeric_limits<float>::infinity() : 0.0f);
    for (std::int64_t r = 0; r < rows; ++r, x += extents_.inner) {
      if (max_) {
        vector_max_into(x, y, n);
      } else {
        vector_binary(BinaryFunction::kAdd, 0, {y, false}, {x, false}, y, n);
      }
    }
  }

  void sum_long_columns(const float* x, float* y, double* sums, std::int64_t n) const {
    std::fill(sums, sums + n, 0.0);
    for (std::int64_t r = 0; r < extents_.reduced; r += kRowsOfBlock) {
      reduce_columns(x + r * extents_.inner, std::min(kRowsOfBlock, extents_.reduced - r), y, n);
      for (std::int64_t c = 0; c < n; ++c) sums[c] += double(y[c]);
    }
    for (std::int64_t c = 0; c < n; ++c) y[c] = float(sums[c] * double(factor_));
  }

  const Extents extents_;
  const bool max_;
  float factor_ = 1;
  ThreadPool& pool_;
};

std::unique_ptr<Kernel> make_reduce(const Node& node, ThreadPool& pool) {
  const std::optional<Extents> extents = extents_of(node);
  if (!extents || node.outputs()[0].dtype != DType::kFloat32) return nullptr;
  return std::make_unique<ReduceKernel>(node, *extents, pool);
}

}  // namespace

void add_cpu_reduce_kernels(KernelTable& table) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max"}) table.add(op, &make_reduce);
}

}  // namespace paceline
