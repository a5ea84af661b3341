#include "kernels/cpu/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <dnnl.hpp>
#include <vector>

#include "base/allocation_scope.h"
#include "base/buffer.h"
#include "base/check.h"
#include "kernels/cpu/claimed_tiles.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/one_thread.h"
#include "kernels/cpu/tile_blocks.h"
#include "kernels/cpu/tile_grid.h"
#include "paceline/error.h"

namespace paceline {

namespace {

using DataType = dnnl::memory::data_type;

DataType operand_type(const GemmShape& s) {
  return s.operands == DType::kBFloat16 ? DataType::bf16 : DataType::f32;
}

// The columns of the widest blocks into which oneDNN packs B.
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

dnnl::matmul::primitive_desc describe(const GemmShape& s, const dnnl::memory::desc& b,
                                      const dnnl::engine& engine) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::desc desc(matrix(s.m, s.k, s.transpose_a, s.lda, operand_type(s)), b,
                                matrix(s.m, s.n, false, s.ldc, DataType::f32));
  return {desc, attributes, engine};
}

// Describes B in the layout that oneDNN reads fastest. If that layout is by rows, pads the rows to
// a good alignment.
dnnl::memory::desc packed_b(const GemmShape& s, const dnnl::engine& engine) {
  const DataType type = operand_type(s);
  const dnnl::memory::desc any({s.k, s.n}, type, dnnl::memory::format_tag::any);
  const dnnl::memory::desc chosen = describe(s, any, engine).weights_desc();
  const bool in_rows = chosen == matrix(s.k, s.n, false, s.n, type);
  return in_rows ? matrix(s.k, s.n, false, copied_ld(s.n), type) : chosen;
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
    GemmShape shape;
    dnnl::matmul primitive;
    dnnl::matmul::primitive_desc desc;
  };

  // One call of oneDNN, and the copies before it. Tiles run at the same time, so each has its own
  // memory objects.
  struct Block {
    std::int64_t a, b, c;  // offsets in elements, within the tile's part of each matrix
    std::size_t primitive;
    bool copies_a, copies_b;  // false: read in place, or copied before
    dnnl::stream stream;
    std::array<dnnl::memory, 4> memories;
    std::array<dnnl_exec_arg_t, 4> arguments;
  };

  struct Tile {
    std::int64_t a, b, c;  // offsets in elements of the tile in each matrix
    std::size_t scratch;   // offset in bytes of its scratch
    TileBlocks cut;
    std::vector<Block> blocks;
  };

  // Columns of B that several tiles share, to be packed in the layout of the primitives.
  struct Panel {
    std::int64_t from;  // offset in elements in B
    std::size_t to;     // offset in bytes in the packed B
    dnnl::reorder primitive;
    dnnl::stream stream;
    std::array<dnnl::memory, 2> memories;
    std::array<dnnl_exec_arg_t, 2> arguments;
  };

  State(const GemmShape& shape, ThreadPool& pool) : shape(shape), pool(pool) {}

  void make_tiles() {
    const OneThread guard;
    grid = choose_tiles(shape, pool.threads(), onednn_reads_in_place());
    tiles.reserve(grid.tiles());
    for (const TileRange& columns : grid.columns) {
      const std::int64_t b =
          shape.packed_b ? make_panel(columns) : columns.begin * shape.b_column();
      for (const TileRange& rows : grid.rows) make_tile(rows, columns, b);
    }
  }

  GemmShape part_of_shape(TileRange rows, TileRange columns) const {
    GemmShape part = shape;
    part.m = rows.size();
    part.n = columns.size();
    return part;
  }

  dnnl::memory memory_of(const dnnl::memory::desc& desc) const {
    return {desc, engine, DNNL_MEMORY_NONE};
  }

  // Returns the panel's offset in the packed B, in elements. All tiles of these columns share the
  // panel. If there is only one panel, it is packed in parts, by all threads.
  std::int64_t make_panel(TileRange columns) {
    const std::size_t index = primitive_for(part_of_shape(grid.rows[0], columns));
    const dnnl::memory::desc packed = primitives[index].desc.weights_desc();
    const std::int64_t most = grid.columns.size() > 1 ? 1 : pool.threads();
    const std::int64_t parts = std::clamp<std::int64_t>(columns.size() / kPackAlign, 1, most);
    for (std::int64_t i = 0; i < parts; ++i) {
      const TileRange part = tile_range(columns.size(), parts, i, kPackAlign);
      add_panel((columns.begin + part.begin) * shape.b_column(),
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
    const GemmShape part = part_of_shape(rows, columns);
    Tile tile{rows.begin * shape.a_row(),
              b,
              rows.begin * shape.ldc + columns.begin,
              tile_scratch_bytes,
              choose_blocks(part, onednn_reads_in_place()),
              {}};
    for (std::int64_t k = 0; k < part.k; k += tile.cut.depth)
      for (std::int64_t i = 0; i < part.m; i += tile.cut.rows)
        for (std::int64_t j = 0; j < part.n; j += tile.cut.columns) add_block(tile, part, i, j, k);
    const auto elements = std::size_t(tile.cut.elements_of_a() + tile.cut.elements_of_b());
    copy_bytes = std::max(copy_bytes, round_up(elements * sizeof(float), kBufferAlignment));
    tiles.push_back(std::move(tile));
  }

  // Adds a block to the tile that starts at this row, column and depth of the tile.
  void add_block(Tile& tile, GemmShape part, std::int64_t row, std::int64_t column,
                 std::int64_t depth) {
    part.m = std::min(part.m - row, tile.cut.rows);
    part.n = std::min(part.n - column, tile.cut.columns);
    part.k = std::min(part.k - depth, tile.cut.depth);
    if (tile.cut.copy_a) part.lda = tile.cut.lda();
    if (tile.cut.copy_b) part.ldb = tile.cut.ldb();
    if (depth > 0) part.accumulate = true;
    const std::size_t index = primitive_for(part);
    const dnnl::matmul::primitive_desc& desc = primitives[index].desc;
    Block block{row * shape.a_row() + depth * shape.a_depth(),
                column * shape.b_column() + depth * shape.b_depth(),
                row * shape.ldc + column,
                index,
                tile.cut.copy_a && column == 0,
                tile.cut.copy_b,
                dnnl::stream(engine),
                {memory_of(desc.src_desc()), memory_of(desc.weights_desc()),
                 memory_of(desc.dst_desc()), memory_of(desc.scratchpad_desc())},
                {}};
    const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    for (std::size_t i = 0; i < 4; ++i) block.arguments[i] = {names[i], block.memories[i].get()};
    const std::size_t scratch = round_up(desc.scratchpad_desc().get_size(), kBufferAlignment);
    tile_scratch_bytes = std::max(tile_scratch_bytes, tile.scratch + scratch);
    tile.blocks.push_back(std::move(block));
  }

  std::size_t primitive_for(const GemmShape& part) {
    const auto made = std::ranges::find(primitives, part, &Primitive::shape);
    if (made != primitives.end()) return std::size_t(made - primitives.begin());
    const dnnl::matmul::primitive_desc desc = describe(part, right_of(part), engine);
    primitives.push_back({part, dnnl::matmul(desc), desc});
    return primitives.size() - 1;
  }

  // Describes B for a part. The layout of a packed panel is the same for tiles of all heights.
  dnnl::memory::desc right_of(const GemmShape& part) const {
    if (!part.packed_b)
      return matrix(part.k, part.n, part.transpose_b, part.ldb, operand_type(part));
    const auto wide = [&](const Primitive& made) { return made.shape.n == part.n; };
    const auto made = std::ranges::find_if(primitives, wide);
    return made != primitives.end() ? made->desc.weights_desc() : packed_b(part, engine);
  }

  // Calls oneDNN's C interface, since the C++ interface would build a map and a vector in each
  // call. `part` is a block or a panel; `addresses` has one address for each of its memories.
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

  // Writes the tile to `c`; `lane` selects the memory for the copies of its operands.
  void run_tile(Tile& tile, const void* a, const void* b, float* c, std::byte* scratch,
                std::size_t lane) {
    run_tile_at(tile, element(a, tile.a), element(b, tile.b), c, scratch, lane);
  }
  // `a` and `b` begin with the tile's own parts of A and B.
  void run_tile_at(Tile& tile, void* a, void* b, float* c, std::byte* scratch, std::size_t lane) {
    auto* copy_a = reinterpret_cast<float*>(scratch + tile_scratch_bytes + lane * copy_bytes);
    float* copy_b = copy_a + tile.cut.elements_of_a();
    for (Block& block : tile.blocks) {
      const GemmShape& part = primitives[block.primitive].shape;
      void *block_a = element(a, block.a), *block_b = element(b, block.b);
      if (block.copies_a) copy_rows(block_a, shape.lda, copy_a, part.lda, part.k, part.m);
      if (block.copies_b) copy_rows(block_b, shape.ldb, copy_b, part.ldb, part.k, part.n);
      execute(primitives[block.primitive].primitive, block,
              {tile.cut.copy_a ? copy_a : block_a, tile.cut.copy_b ? copy_b : block_b, c + block.c,
               scratch + tile.scratch});
    }
  }

  std::size_t scratch_bytes() const {
    return tile_scratch_bytes + std::size_t(pool.threads()) * copy_bytes;
  }
  std::size_t row_bytes() const {
    std::int64_t most = 0;
    for (const TileRange& rows : grid.rows) most = std::max(most, rows.size());
    return round_up(std::size_t(most * shape.n) * sizeof(float), kBufferAlignment);
  }

  // Computes a row of tiles in the lane's memory, and passes it to the sink.
  void stream_row(std::size_t row, const void* a, const void* b, OutputSink& sink,
                  std::byte* scratch, std::size_t lane) {
    auto* const memory = reinterpret_cast<float*>(scratch + scratch_bytes() + lane * row_bytes());
    const std::int64_t first = grid.rows[row].begin * shape.n;
    for (std::size_t j = 0; j < grid.columns.size(); ++j) {
      Tile& tile = tiles[j * grid.rows.size() + row];
      run_tile(tile, a, b, memory + (tile.c - first), scratch, lane);
    }
    sink.take(first, {memory, std::size_t(grid.rows[row].size() * shape.n)});
  }

  void run_panel(Panel& panel, const void* b, std::byte* packed) {
    execute(panel.primitive, panel, {element(b, panel.from), packed + panel.to});
  }

  // oneDNN declares even inputs as writable memory.
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
  // Bytes of scratch memory: those of oneDNN for all tiles, and those of one lane for copied
  // operands.
  std::size_t tile_scratch_bytes = 0, copy_bytes = 0;
  std::size_t packed_bytes = 0;
  bool backwards = false;  // whether the last run went backwards
};

Gemm::Gemm(const GemmShape& shape, ThreadPool& pool)
    : state_(std::make_unique<State>(shape, pool)) {
  PACELINE_CHECK(!shape.packed_b || !shape.transpose_a);
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

std::size_t Gemm::scratch_bytes() const { return state_->scratch_bytes(); }
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
  const auto run_claimed = [&](std::size_t lane, std::size_t i) {
    for (std::size_t k = 0; k < together; ++k) {
      State::Tile& tile = state.tiles[i * together + k];
      state.run_tile(tile, a, b, c + tile.c, scratch.data(), lane);
    }
  };
  const std::size_t claims = state.tiles.size() / together;
  if (!state.shape.packed_b) return claim_tiles(state.pool, claims, run_claimed);
  // Several runs share one B. Each thread reads the same part of B in every run, and starts with
  // what it read last. This is a seventh faster if B is a few times as large as the second-level
  // caches.
  state.backwards = !state.backwards;
  auto run_own = [&](std::int64_t i) { run_claimed(0, std::size_t(i)); };  // it copies nothing
  state.pool.run_own_tiles(std::int64_t(claims), state.backwards, TileFunction(run_own));
}

std::int64_t Gemm::row_parts() const {
  const TileGrid& grid = state_->grid;
  if (grid.columns.size() != 1 || state_->shape.transpose_a || state_->copy_bytes > 0) return 1;
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
  state_->run_tile_at(tile, state_->element(a, 0), state_->element(b, tile.b), c, scratch.data(),
                      0);
}

bool Gemm::streams() const { return state_->grid.panels; }

std::size_t Gemm::stream_scratch_bytes() const {
  return scratch_bytes() + std::size_t(state_->pool.threads()) * state_->row_bytes();
}

void Gemm::stream(const void* a, const void* b, OutputSink& sink, std::span<std::byte> scratch) {
  State& state = *state_;
  claim_tiles(state.pool, state.grid.rows.size(), [&](std::size_t lane, std::size_t row) {
    state.stream_row(row, a, b, sink, scratch.data(), lane);
  });
}

}  // namespace paceline
