// Measures the matrix products of the workloads: our tiles on 1 and 2 threads beside a plain
// dnnl_sgemm on one thread.
#include <benchmark/benchmark.h>
#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <string>

#include "base/buffer.h"
#include "kernels/cpu/gemm.h"

namespace {

using paceline::GemmShape;

/// A matrix aligned as tensors are, because oneDNN's speed depends on it.
class Matrix {
 public:
  Matrix(std::int64_t elements, float value) : memory_(std::size_t(elements) * sizeof(float)) {
    std::fill_n(data(), elements, value);
  }
  float* data() const { return reinterpret_cast<float*>(memory_.data()); }

 private:
  paceline::Buffer memory_;
};

struct Operands {
  explicit Operands(const GemmShape& s)
      : a(s.m * s.k, 0.5f), b(s.k * s.n, 0.25f), c(s.m * s.n, 0.0f) {}
  Matrix a, b, c;
};

void count_flops(benchmark::State& state, const GemmShape& s) {
  const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k);
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * double(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
}

void tiles(benchmark::State& state, const GemmShape& s) {
  paceline::ThreadPool pool(int(state.range(0)));
  paceline::Gemm gemm(s, pool);
  Operands x(s);
  const paceline::Buffer scratch(gemm.scratch_bytes()), packed(gemm.packed_bytes());
  if (s.packed_b) gemm.pack(x.b.data(), packed.span());
  const void* const b = s.packed_b ? static_cast<void*>(packed.data()) : x.b.data();
  while (state.KeepRunning()) gemm.run(x.a.data(), b, x.c.data(), scratch.span());
  count_flops(state, s);
}

void plain(benchmark::State& state, const GemmShape& s) {
  omp_set_num_threads(1);
  Operands x(s);
  while (state.KeepRunning()) {
    dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1, x.a.data(),
               s.lda, x.b.data(), s.ldb, 0, x.c.data(), s.ldc);
  }
  count_flops(state, s);
}

void add(const char* name, const GemmShape& shape) {
  const auto label = [&](const char* how) { return std::string(name) + "/" + how; };
  benchmark::RegisterBenchmark(label("sgemm").c_str(), plain, shape)->UseRealTime();
  benchmark::RegisterBenchmark(label("tiles").c_str(), tiles, shape)->Arg(1)->Arg(2)->UseRealTime();
}

void add_packed(const std::string& name, GemmShape shape) {
  shape.packed_b = true;
  benchmark::RegisterBenchmark(name.c_str(), tiles, shape)->Arg(1)->Arg(2)->UseRealTime();
}

}  // namespace

int main(int argc, char** argv) {
  add("mlp_forward", GemmShape::packed(128, 4096, 4096));
  add("mlp_by_x", GemmShape::packed(128, 4096, 4096, false, true));
  add("mlp_by_w", GemmShape::packed(4096, 4096, 128, true));
  add("ptb_softmax", GemmShape::packed(400, 10000, 200));
  add("ptb_softmax_by_x", GemmShape::packed(400, 200, 10000, false, true));
  add("ptb_softmax_by_w", GemmShape::packed(200, 10000, 400, true));
  for (const std::int64_t hidden : {200, 256, 512, 650, 1024, 1500}) {
    const std::string name = "recurrent_" + std::to_string(hidden);
    add_packed(name + "/forwards", GemmShape::packed(20, 4 * hidden, hidden));
    add_packed(name + "/backwards", GemmShape::packed(20, hidden, 4 * hidden, false, true));
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
