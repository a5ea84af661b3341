#include "kernels/cpu/gemm.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <vector>

#include "base/allocation_scope.h"
#include "base/buffer.h"
#include "kernels/cpu/tile_grid.h"
#include "paceline/error.h"

namespace paceline {

namespace {

// oneDNN asks OpenMP how many threads it may use, and OpenMP keeps that per thread: it is set
// around each call and put back, so that it holds on every thread and changes nothing for others.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, bool transposed,
                          std::int64_t ld) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, ld} : dnnl::memory::dims{ld, 1};
  return {{rows, columns}, dnnl::memory::data_type::f32, strides};
}

[[noreturn]] void throw_failed(const GemmShape& s, const char* what) {
  throw Error(ErrorCode::kInternal,
              fmt::format("[gemm] oneDNN on ({},{})x({},{}): {}", s.m, s.k, s.k, s.n, what));
}

dnnl::matmul::primitive_desc describe(const GemmShape& s, const dnnl::engine& engine) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::desc desc(matrix(s.m, s.k, s.transpose_a, s.lda),
                                matrix(s.k, s.n, s.transpose_b, s.ldb),
                                matrix(s.m, s.n, false, s.ldc));
  return {desc, attributes, engine};
}

void clear(float* c, const GemmShape& s) {
  for (std::int64_t i = 0; i < s.m; ++i) std::fill_n(c + i * s.ldc, s.n, 0.0f);
}

}  // namespace

GemmShape GemmShape::packed(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
                            bool transpose_b, bool accumulate) {
  return {m, n,         k, transpose_a, transpose_b, transpose_a ? m : k, transpose_b ? k : n,
          n, accumulate};
}

struct Gemm::State {
  struct Primitive {
    std::int64_t m, n;
    dnnl::matmul primitive;
    dnnl::matmul::primitive_desc desc;
  };

  // Tiles run at the same time, so each has memory objects of its own.
  struct Tile {
    std::int64_t a, b, c;  // elements before the tile in each matrix
    std::size_t scratch;   // bytes before its own
    std::size_t primitive;
    dnnl::stream stream;
    std::array<dnnl::memory, 4> memories;
    std::array<dnnl_exec_arg_t, 4> arguments;
  };

  State(const GemmShape& shape, ThreadPool& pool) : shape(shape), pool(pool) {}

  void make_tiles() {
    const OneThread guard;
    const TileGrid grid = choose_tiles(shape, pool.threads());
    tiles.reserve(std::size_t(grid.tiles()));
    for (std::int64_t i = 0; i < grid.rows; ++i) {
      for (std::int64_t j = 0; j < grid.columns; ++j) {
        make_tile(tile_range(shape.m, grid.rows, i), tile_range(shape.n, grid.columns, j));
      }
    }
  }

  void make_tile(TileRange rows, TileRange columns) {
    const std::size_t index = primitive_for(rows.size(), columns.size());
    const dnnl::matmul::primitive_desc& desc = primitives[index].desc;
    const auto memory = [&](const dnnl::memory::desc& of) {
      return dnnl::memory(of, engine, DNNL_MEMORY_NONE);
    };
    Tile tile{rows.begin * (shape.transpose_a ? 1 : shape.lda),
              columns.begin * (shape.transpose_b ? shape.ldb : 1),
              rows.begin * shape.ldc + columns.begin,
              scratch_bytes,
              index,
              dnnl::stream(engine),
              {memory(desc.src_desc()), memory(desc.weights_desc()), memory(desc.dst_desc()),
               memory(desc.scratchpad_desc())},
              {}};
    const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    for (std::size_t i = 0; i < 4; ++i) tile.arguments[i] = {names[i], tile.memories[i].get()};
    scratch_bytes += round_up(desc.scratchpad_desc().get_size(), kBufferAlignment);
    tiles.push_back(std::move(tile));
  }

  std::size_t primitive_for(std::int64_t m, std::int64_t n) {
    for (std::size_t i = 0; i < primitives.size(); ++i) {
      if (primitives[i].m == m && primitives[i].n == n) return i;
    }
    GemmShape part = shape;
    part.m = m;
    part.n = n;
    const dnnl::matmul::primitive_desc desc = describe(part, engine);
    primitives.push_back({m, n, dnnl::matmul(desc), desc});
    return primitives.size() - 1;
  }

  static dnnl_status_t execute(const dnnl::matmul& primitive, const Tile& tile) {
    const ForeignAllocations scope;
    return dnnl_primitive_execute(primitive.get(), tile.stream.get(), int(tile.arguments.size()),
                                  tile.arguments.data());
  }

  // Through oneDNN's C interface: the C++ one would build a map and a vector in each call.
  void run_tile(Tile& tile, const float* a, const float* b, float* c, std::byte* scratch) {
    const OneThread guard;
    void* handles[] = {const_cast<float*>(a + tile.a), const_cast<float*>(b + tile.b), c + tile.c,
                       scratch + tile.scratch};
    for (std::size_t i = 0; i < 4; ++i) {
      dnnl_memory_set_data_handle(tile.memories[i].get(), handles[i]);
    }
    const dnnl_status_t status = execute(primitives[tile.primitive].primitive, tile);
    if (status != dnnl_success) throw_failed(shape, fmt::format("status {}", int(status)).c_str());
  }

  GemmShape shape;
  ThreadPool& pool;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::vector<Primitive> primitives;
  std::vector<Tile> tiles;
  std::size_t scratch_bytes = 0;
};

Gemm::Gemm(const GemmShape& shape, ThreadPool& pool)
    : state_(std::make_unique<State>(shape, pool)) {
  if (shape.m == 0 || shape.n == 0 || shape.k == 0) return;
  try {
    state_->make_tiles();
  } catch (const dnnl::error& error) {
    throw_failed(shape, error.what());
  }
}

Gemm::~Gemm() = default;
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;

std::size_t Gemm::scratch_bytes() const { return state_->scratch_bytes; }

void Gemm::run(const float* a, const float* b, float* c, std::span<std::byte> scratch) {
  State& state = *state_;
  if (state.shape.k == 0 && !state.shape.accumulate) clear(c, state.shape);
  auto tile = [&](std::int64_t i) {
    state.run_tile(state.tiles[std::size_t(i)], a, b, c, scratch.data());
  };
  state.pool.run_tiles(std::int64_t(state.tiles.size()), TileFunction(tile));
}

}  // namespace paceline
