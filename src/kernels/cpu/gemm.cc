#include "kernels/cpu/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "base/allocation_scope.h"
#include "base/buffer.h"
#include "kernels/cpu/one_thread.h"
#include "kernels/cpu/tile_grid.h"
#include "paceline/error.h"

namespace paceline {

namespace {

using DataType = dnnl::memory::data_type;

DataType operand_type(const GemmShape& s) {
  return s.operands == DType::kBFloat16 ? DataType::bf16 : DataType::f32;
}

// Columns of the widest blocks that oneDNN packs B in.
constexpr std::int64_t kPackAlign = 64;

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, bool transposed, std::int64_t ld,
                          DataType type) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, ld} : dnnl::memory::dims{ld, 1};
  return {{rows, columns}, type, strides};
}

[[noreturn]] void throw_failed(const GemmShape& s, const char* what) {
  throw Error(ErrorCode::kInternal,
              fmt::format("[gemm] oneDNN on ({},{})x({},{}): {}", s.m, s.k, s.k, s.n, what));
}

// `packed`: how B lies, if that is settled.
dnnl::matmul::primitive_desc describe(const GemmShape& s, const dnnl::engine& engine,
                                      const dnnl::memory::desc* packed) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const DataType type = operand_type(s);
  const dnnl::memory::desc b =
      !s.packed_b         ? matrix(s.k, s.n, s.transpose_b, s.ldb, type)
      : packed != nullptr ? *packed
                          : dnnl::memory::desc({s.k, s.n}, type, dnnl::memory::format_tag::any);
  const dnnl::matmul::desc desc(matrix(s.m, s.k, s.transpose_a, s.lda, type), b,
                                matrix(s.m, s.n, false, s.ldc, DataType::f32));
  return {desc, attributes, engine};
}

void clear(float* c, const GemmShape& s) {
  for (std::int64_t i = 0; i < s.m; ++i) std::fill_n(c + i * s.ldc, s.n, 0.0f);
}

}  // namespace

GemmShape GemmShape::packed(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
                            bool transpose_b, bool accumulate) {
  GemmShape shape{m, n, k, transpose_a, transpose_b};
  shape.lda = transpose_a ? m : k;
  shape.ldb = transpose_b ? k : n;
  shape.ldc = n;
  shape.accumulate = accumulate;
  return shape;
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

  // Columns of B that tiles share, on their way into the layout of the primitives.
  struct Panel {
    std::int64_t from;  // elements before it in B
    std::size_t to;     // bytes before it in the packed B
    dnnl::reorder primitive;
    dnnl::stream stream;
    std::array<dnnl::memory, 2> memories;
    std::array<dnnl_exec_arg_t, 2> arguments;
  };

  State(const GemmShape& shape, ThreadPool& pool) : shape(shape), pool(pool) {}

  void make_tiles() {
    const OneThread guard;
    grid = choose_tiles(shape, pool.threads());
    tiles.reserve(grid.tiles());
    for (const TileRange& columns : grid.columns) {
      const std::int64_t b = shape.packed_b ? make_panel(columns) : first_of_b(columns.begin);
      for (const TileRange& rows : grid.rows) make_tile(rows, columns, b);
    }
  }

  std::int64_t first_of_b(std::int64_t column) const {
    return column * (shape.transpose_b ? shape.ldb : 1);
  }

  dnnl::memory memory_of(const dnnl::memory::desc& desc) const {
    return {desc, engine, DNNL_MEMORY_NONE};
  }

  // Where it lies in the packed B, in elements. One panel serves tiles of all heights. One that all
  // threads read is also packed by all of them.
  std::int64_t make_panel(TileRange columns) {
    const std::size_t index = primitive_for(grid.rows[0].size(), columns.size());
    const dnnl::memory::desc packed = primitives[index].desc.weights_desc();
    const std::int64_t most = grid.columns.size() > 1 ? 1 : pool.threads();
    const std::int64_t parts = std::clamp<std::int64_t>(columns.size() / kPackAlign, 1, most);
    for (std::int64_t i = 0; i < parts; ++i) {
      const TileRange part = tile_range(columns.size(), parts, i, kPackAlign);
      add_panel(first_of_b(columns.begin + part.begin),
                packed.submemory_desc({shape.k, part.size()}, {0, part.begin}));
    }
    packed_bytes += round_up(packed.get_size(), kBufferAlignment);
    return std::int64_t(panels.back().to / size_of(shape.operands));
  }

  void add_panel(std::int64_t from, const dnnl::memory::desc& part) {
    const dnnl::memory::desc plain =
        matrix(shape.k, part.dims()[1], shape.transpose_b, shape.ldb, operand_type(shape));
    Panel panel{from,
                packed_bytes,
                dnnl::reorder({engine, plain, engine, part}),
                dnnl::stream(engine),
                {memory_of(plain), memory_of(part)},
                {}};
    panel.arguments = {
        {{DNNL_ARG_FROM, panel.memories[0].get()}, {DNNL_ARG_TO, panel.memories[1].get()}}};
    panels.push_back(std::move(panel));
  }

  void make_tile(TileRange rows, TileRange columns, std::int64_t b) {
    const std::size_t index = primitive_for(rows.size(), columns.size());
    const dnnl::matmul::primitive_desc& desc = primitives[index].desc;
    Tile tile{rows.begin * (shape.transpose_a ? 1 : shape.lda),
              b,
              rows.begin * shape.ldc + columns.begin,
              scratch_bytes,
              index,
              dnnl::stream(engine),
              {memory_of(desc.src_desc()), memory_of(desc.weights_desc()),
               memory_of(desc.dst_desc()), memory_of(desc.scratchpad_desc())},
              {}};
    const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    for (std::size_t i = 0; i < 4; ++i) tile.arguments[i] = {names[i], tile.memories[i].get()};
    scratch_bytes += round_up(desc.scratchpad_desc().get_size(), kBufferAlignment);
    tiles.push_back(std::move(tile));
  }

  std::size_t primitive_for(std::int64_t m, std::int64_t n) {
    std::optional<dnnl::memory::desc> packed;
    for (std::size_t i = 0; i < primitives.size(); ++i) {
      if (primitives[i].n != n) continue;
      if (primitives[i].m == m) return i;
      packed = primitives[i].desc.weights_desc();
    }
    GemmShape part = shape;
    part.m = m;
    part.n = n;
    const dnnl::matmul::primitive_desc desc = describe(part, engine, packed ? &*packed : nullptr);
    primitives.push_back({m, n, dnnl::matmul(desc), desc});
    return primitives.size() - 1;
  }

  // Through oneDNN's C interface: the C++ one would build a map and a vector in each call. `part`
  // is a tile or a panel, with one address per memory.
  template <typename Part, std::size_t N>
  void execute(const dnnl::primitive& primitive, Part& part, void* const (&addresses)[N]) {
    const OneThread guard;
    const ForeignAllocations scope;
    for (std::size_t i = 0; i < N; ++i) {
      dnnl_memory_set_data_handle(part.memories[i].get(), addresses[i]);
    }
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive.get(), part.stream.get(), N, part.arguments.data());
    if (status != dnnl_success) throw_failed(shape, fmt::format("status {}", int(status)).c_str());
  }

  // `c`: where the tile itself goes.
  void run_tile(Tile& tile, const void* a, const void* b, float* c, std::byte* scratch) {
    run_tile_at(tile, element(a, tile.a), b, c, scratch);
  }
  // `a`: the tile's own rows.
  void run_tile_at(Tile& tile, void* a, const void* b, float* c, std::byte* scratch) {
    execute(primitives[tile.primitive].primitive, tile,
            {a, element(b, tile.b), c, scratch + tile.scratch});
  }

  std::size_t row_bytes() const {
    std::int64_t most = 0;
    for (const TileRange& rows : grid.rows) most = std::max(most, rows.size());
    return round_up(std::size_t(most * shape.n) * sizeof(float), kBufferAlignment);
  }

  // A row of tiles into memory of its own, and from there to the sink.
  void stream_row(std::size_t row, const void* a, const void* b, OutputSink& sink,
                  std::byte* scratch, float* memory) {
    const std::int64_t first = grid.rows[row].begin * shape.n;
    for (std::size_t j = 0; j < grid.columns.size(); ++j) {
      Tile& tile = tiles[j * grid.rows.size() + row];
      run_tile(tile, a, b, memory + (tile.c - first), scratch);
    }
    sink.take(first, {memory, std::size_t(grid.rows[row].size() * shape.n)});
  }

  void run_panel(Panel& panel, const void* b, std::byte* packed) {
    execute(panel.primitive, panel, {element(b, panel.from), packed + panel.to});
  }

  // oneDNN takes what it only reads as if it wrote it.
  void* element(const void* of, std::int64_t index) const {
    const auto* bytes = static_cast<const std::byte*>(of);
    return const_cast<std::byte*>(bytes + index * std::int64_t(size_of(shape.operands)));
  }

  GemmShape shape;
  ThreadPool& pool;
  TileGrid grid;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::vector<Primitive> primitives;
  std::vector<Tile> tiles;
  std::vector<Panel> panels;
  std::size_t scratch_bytes = 0, packed_bytes = 0;
  bool backwards = false;  // the last run
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
std::size_t Gemm::packed_bytes() const { return state_->packed_bytes; }

void Gemm::pack(const void* b, std::span<std::byte> packed) {
  State& state = *state_;
  auto panel = [&](std::int64_t i) {
    state.run_panel(state.panels[std::size_t(i)], b, packed.data());
  };
  state.pool.run_tiles(std::int64_t(state.panels.size()), TileFunction(panel));
}

void Gemm::run(const void* a, const void* b, float* c, std::span<std::byte> scratch) {
  State& state = *state_;
  if (state.shape.k == 0 && !state.shape.accumulate) clear(c, state.shape);
  const std::size_t together = state.grid.whole_columns ? state.grid.rows.size() : 1;
  auto claim = [&](std::int64_t i) {
    for (std::size_t k = 0; k < together; ++k) {
      State::Tile& tile = state.tiles[std::size_t(i) * together + k];
      state.run_tile(tile, a, b, c + tile.c, scratch.data());
    }
  };
  const auto claims = std::int64_t(state.tiles.size() / together);
  if (!state.shape.packed_b) return state.pool.run_tiles(claims, TileFunction(claim));
  // Several runs share one B: a thread reads the same part of it each time, what it read last
  // first. A seventh faster where B is some times as large as the second-level caches.
  state.backwards = !state.backwards;
  state.pool.run_own_tiles(claims, state.backwards, TileFunction(claim));
}

std::int64_t Gemm::row_parts() const {
  const TileGrid& grid = state_->grid;
  if (grid.columns.size() != 1 || state_->shape.transpose_a) return 1;
  return std::int64_t(grid.rows.size());
}

std::pair<std::int64_t, std::int64_t> Gemm::rows_of(std::int64_t part) const {
  if (row_parts() == 1) return {0, state_->shape.m};
  const TileRange rows = state_->grid.rows[std::size_t(part)];
  return {rows.begin, rows.end};
}

void Gemm::run_rows(std::int64_t part, const void* a, const void* b, float* c,
                    std::span<std::byte> scratch) {
  if (row_parts() == 1) return run(a, b, c, scratch);
  State::Tile& tile = state_->tiles[std::size_t(part)];
  state_->run_tile_at(tile, state_->element(a, 0), b, c, scratch.data());
}

bool Gemm::streams() const { return state_->grid.panels; }

std::size_t Gemm::stream_scratch_bytes() const {
  return scratch_bytes() + std::size_t(state_->pool.threads()) * state_->row_bytes();
}

void Gemm::stream(const void* a, const void* b, OutputSink& sink, std::span<std::byte> scratch) {
  State& state = *state_;
  std::atomic<std::size_t> next{0};
  // Memory belongs to a lane, not to a row of tiles; a thread that takes a lane claims rows.
  auto lane = [&](std::int64_t i) {
    auto* memory = reinterpret_cast<float*>(scratch.data() + state.scratch_bytes +
                                            std::size_t(i) * state.row_bytes());
    const std::size_t rows = state.grid.rows.size();
    for (std::size_t row; (row = next.fetch_add(1, std::memory_order_relaxed)) < rows;)
      state.stream_row(row, a, b, sink, scratch.data(), memory);
  };
  state.pool.run_tiles(state.pool.threads(), TileFunction(lane));
}

}  // namespace paceline
