// Measures copy_bytes beside std::memcpy on data in the caches. The parameters are the number of
// bytes, and by how many bytes further in its page the target begins than the source.
#include <benchmark/benchmark.h>

#include <cstring>

#include "base/buffer.h"
#include "base/copy_bytes.h"

namespace {

using Copy = void (*)(void* to, const void* from, std::size_t bytes);

void copy(benchmark::State& state, Copy copy) {
  constexpr std::size_t kPage = 4096;
  const auto bytes = std::size_t(state.range(0)), further = std::size_t(state.range(1));
  const std::size_t pages = (bytes / kPage + 1) * kPage;
  const paceline::Buffer memory(pages + further + bytes);
  std::memset(memory.data(), 1, memory.size());
  while (state.KeepRunning()) {
    copy(memory.data() + pages + further, memory.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * std::int64_t(bytes));
}

}  // namespace

int main(int argc, char** argv) {
  for (const std::int64_t bytes : {1'000, 4'000, 10'000, 64'000, 1'000'000, 4'000'000}) {
    for (const std::int64_t further : {0, 4, 16, 32}) {
      benchmark::RegisterBenchmark("memcpy", copy, [](void* t, const void* f, std::size_t n) {
        std::memcpy(t, f, n);
      })->Args({bytes, further});
      benchmark::RegisterBenchmark("copy_bytes", copy, paceline::copy_bytes)
          ->Args({bytes, further});
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
