// Products of matrices, and the LSTM, which is made of products.
#include <map>
#include <tuple>
#include <utility>

#include "kernels/cuda/cuda_work.h"
#include "kernels/rounded_products.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

const char* const kProductSource = R"(
// c (m,n) = a (m,k) · b (k,n), or is added to c, so many times; distances of one row, column or
// matrix to the next.
struct Product {
  i64 count, m, n, k, a_next, a_row, a_column, b_next, b_row, b_column, c_next, adds;
  i64 of_bfloat16;
};
__device__ inline float number(float x) { return x; }
__device__ inline float number(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }
// A block of 256 threads makes 16 x 16 elements.
template <typename In>
__device__ void multiply(float* c, const In* a, const In* b, const Product& p) {
  __shared__ float left[16][17], right[16][17];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const i64 across = (p.n + 15) / 16, down = (p.m + 15) / 16;
  for (i64 tile = blockIdx.x; tile < p.count * across * down; tile += gridDim.x) {
    const i64 matrix = tile / (across * down);
    const i64 row = tile / across % down * 16 + y, column = tile % across * 16 + x;
    float sum = 0;
    for (i64 from = 0; from < p.k; from += 16) {
      const i64 of_a = matrix * p.a_next + row * p.a_row + (from + x) * p.a_column;
      const i64 of_b = matrix * p.b_next + (from + y) * p.b_row + column * p.b_column;
      left[y][x] = row < p.m && from + x < p.k ? number(a[of_a]) : 0.0f;
      right[y][x] = column < p.n && from + y < p.k ? number(b[of_b]) : 0.0f;
      __syncthreads();
      for (int l = 0; l < 16; ++l) sum = fmaf(left[y][l], right[l][x], sum);
      __syncthreads();
    }
    if (row < p.m && column < p.n) {
      float& to = c[matrix * p.c_next + row * p.n + column];
      to = p.adds ? to + sum : sum;
    }
  }
}
extern "C" __global__ void product(float* c, const float* a, const float* b, Product p) {
  multiply(c, a, b, p);
}
extern "C" __global__ void product_of_bfloat16(float* c, const unsigned short* a,
                                               const unsigned short* b, Product p) {
  multiply(c, a, b, p);
}
extern "C" __global__ void add_bias(float* c, const float* bias, i64 elements, i64 n, i64 relu) {
  EACH(i, elements) {
    const float x = c[i] + bias[i % n];
    c[i] = relu && x < 0.0f ? 0.0f : x;
  }
}
extern "C" __global__ void round_to_bfloat16(unsigned short* to, const float* from, i64 n) {
  EACH(i, n) {
    const unsigned word = __float_as_uint(from[i]);
    to[i] = from[i] != from[i] ? 0x7fc0 : (word + 0x7fff + ((word >> 16) & 1)) >> 16;
  }
}
)";

const char* const kCells = R"(
__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
// A step of n = batch * hidden units. `gates` has the products, and gets the gates i, j, f, o.
extern "C" __global__ void cells(float* gates, float* output, float* cell, float* last_output,
                                 float* last_cell, const float* before, const float* biases,
                                 i64 n, i64 hidden, float forget_bias) {
  EACH(e, n) {
    const i64 unit = e % hidden;
    float* z = gates + e / hidden * 4 * hidden + unit;
    const float i = sigmoid(z[0] + biases[unit]);
    const float j = tanhf(z[hidden] + biases[hidden + unit]);
    const float f = sigmoid(z[2 * hidden] + biases[2 * hidden + unit] + forget_bias);
    const float o = sigmoid(z[3 * hidden] + biases[3 * hidden + unit]);
    const float c = before[e] * f + i * j, h = tanhf(c) * o;
    z[0] = i;
    z[hidden] = j;
    z[2 * hidden] = f;
    z[3 * hidden] = o;
    cell[e] = c;
    output[e] = h;
    if (last_output) last_output[e] = h;
    if (last_cell) last_cell[e] = c;
  }
}
extern "C" __global__ void begin_gradient(float* to, const float* given, i64 n) {
  EACH(e, n) to[e] = given ? given[e] : 0.0f;
}
extern "C" __global__ void cells_grad(float* dz, float* dcs, const float* dhs,
                                      const float* d_outputs, const float* gates,
                                      const float* cell, const float* before, i64 n, i64 hidden) {
  EACH(e, n) {
    const i64 first = e / hidden * 4 * hidden + e % hidden;
    const float i = gates[first], j = gates[first + hidden];
    const float f = gates[first + 2 * hidden], o = gates[first + 3 * hidden];
    const float tc = tanhf(cell[e]);
    const float dh = dhs[e] + (d_outputs ? d_outputs[e] : 0.0f);
    const float dc = dcs[e] + dh * o * (1 - tc * tc);
    dz[first] = dc * j * i * (1 - i);
    dz[first + hidden] = dc * i * (1 - j * j);
    dz[first + 2 * hidden] = dc * before[e] * f * (1 - f);
    dz[first + 3 * hidden] = dh * tc * o * (1 - o);
    dcs[e] = dc * f;
  }
}
)";

using A = CudaArgument;

/// The products of a node, which run one after another.
class Products {
 public:
  explicit Products(bool rounds) : rounds_(rounds) {}

  CudaWork work{kProductSource, {}, 0, {}};

  /// Adds the product c = a · b. If the node rounds products, each factor is rounded to bfloat16
  /// once.
  void add(const A& c, A a, A b, CudaProduct p) {
    if (rounds_) {
      a = rounded(a, p.m * p.k);
      b = rounded(b, p.k * p.n);
      p.of_bfloat16 = 1;
    }
    work.launches.push_back(
        {p.of_bfloat16 != 0 ? "product_of_bfloat16" : "product",
         p.count * ((p.m + 15) / 16) * ((p.n + 15) / 16),
         {c, a, b, A::of(p)},
         256,
         p.k == 0 ? std::optional<CudaLibraryCall>{} : CudaLibraryCall{p, c, a, b}});
  }

 private:
  A rounded(const A& factor, std::int64_t n) {
    const auto key = std::tuple(factor.kind, factor.index, factor.offset, n);
    const auto found = rounded_.find(key);
    if (found != rounded_.end()) return A::scratch(found->second);
    const std::size_t at = work.add_scratch(std::size_t(n) * 2);
    rounded_.emplace(key, at);
    work.launches.push_back(
        {"round_to_bfloat16", blocks_for(n), {A::scratch(at), factor, A::integer(n)}});
    return A::scratch(at);
  }

  const bool rounds_;
  std::map<std::tuple<A::Kind, std::size_t, std::size_t, std::int64_t>, std::size_t> rounded_;
};

CudaWork matmul(const Node& node) {
  const bool ta = node.attributes().get<bool>("transpose_a");
  const bool tb = node.attributes().get<bool>("transpose_b");
  const Shape &a = node.input(0).shape(), &c = node.outputs()[0].shape;
  CudaProduct p{.m = c[-2], .n = c[-1], .k = a[ta ? -2 : -1]};
  for (int d = 0; d + 2 < c.rank(); ++d) p.count *= c[d];
  p.a_next = p.m * p.k;
  p.b_next = p.k * p.n;
  p.c_next = p.m * p.n;
  p.a_row = ta ? 1 : p.k;
  p.a_column = ta ? p.m : 1;
  p.b_row = tb ? 1 : p.n;
  p.b_column = tb ? p.k : 1;
  p.of_bfloat16 = node.input(0).dtype() == DType::kBFloat16;
  Products products(false);
  products.add(A::output(0), A::input(0), A::input(1), p);
  return std::move(products.work);
}

CudaWork matmul_bias(const Node& node) {
  CudaWork work = matmul(node);
  const bool relu = node.attributes().get<bool>("relu");
  const Shape& c = node.outputs()[0].shape;
  if (std::optional<CudaLibraryCall>& library = work.launches[0].library) {
    library->epilogue = relu ? CudaEpilogue::kReluBias : CudaEpilogue::kBias;
    library->bias = A::input(2);
  }
  CudaLaunch add{"add_bias",
                 blocks_for(c.elements()),
                 {A::output(0), A::input(2), A::integer(c.elements()), A::integer(c[1]),
                  A::integer(relu ? 1 : 0)}};
  add.finishes_the_last = true;
  work.launches.push_back(std::move(add));
  return work;
}

/// The sizes of an LSTM, and the byte offsets of the parts of its tensors.
struct Lstm {
  explicit Lstm(const Node& node)
      : steps(node.input(0).shape()[0]),
        batch(node.input(0).shape()[1]),
        inputs(node.input(0).shape()[2]),
        hidden(node.input(1).shape()[1]),
        rounds(rounds_products(node)) {}

  std::size_t state(std::int64_t t) const { return bytes(t * batch * hidden); }
  std::size_t gates(std::int64_t t) const { return bytes(4 * t * batch * hidden); }
  std::size_t hidden_weights() const { return bytes(4 * inputs * hidden); }
  static std::size_t bytes(std::int64_t elements) { return std::size_t(elements) * sizeof(float); }

  /// Returns the product of a matrix (rows, k) and the weights of x or of h: (rows, 4·hidden).
  CudaProduct forward(std::int64_t rows, std::int64_t k) const {
    return {.m = rows,
            .n = 4 * hidden,
            .k = k,
            .a_row = k,
            .a_column = 1,
            .b_row = 4 * hidden,
            .b_column = 1};
  }
  /// Returns the product of a matrix (rows, 4·hidden) and transposed weights: (rows, n).
  CudaProduct backward(std::int64_t rows, std::int64_t n) const {
    return {.m = rows,
            .n = n,
            .k = 4 * hidden,
            .a_row = 4 * hidden,
            .a_column = 1,
            .b_row = 1,
            .b_column = 4 * hidden};
  }
  /// Returns the product of (rows, m)ᵀ and (rows, 4·hidden): the gradient of m rows of the weights.
  CudaProduct of_weights(std::int64_t rows, std::int64_t m, bool adds) const {
    return {.m = m,
            .n = 4 * hidden,
            .k = rows,
            .a_row = 1,
            .a_column = m,
            .b_row = 4 * hidden,
            .b_column = 1,
            .adds = adds};
  }

  std::int64_t steps, batch, inputs, hidden;
  bool rounds;
};

CudaWork lstm(const Node& node) {
  const Lstm s(node);
  const std::int64_t units = s.batch * s.hidden;
  Products products(s.rounds);
  CudaWork& work = products.work;
  work.source += kCells;
  products.add(A::output(3), A::input(0), A::input(3), s.forward(s.steps * s.batch, s.inputs));
  for (std::int64_t t = 0; t < s.steps; ++t) {
    CudaProduct from_hidden = s.forward(s.batch, s.hidden);
    from_hidden.adds = 1;
    const bool last = t + 1 == s.steps;
    products.add(A::output(3, s.gates(t)), t == 0 ? A::input(1) : A::output(0, s.state(t - 1)),
                 A::input(3, s.hidden_weights()), from_hidden);
    work.launches.push_back(
        {"cells",
         blocks_for(units),
         {A::output(3, s.gates(t)), A::output(0, s.state(t)), A::output(4, s.state(t)),
          last ? A::output(1) : A::null(), last ? A::output(2) : A::null(),
          t == 0 ? A::input(2) : A::output(4, s.state(t - 1)), A::input(4), A::integer(units),
          A::integer(s.hidden), A::number(node.attributes().get<double>("forget_bias"))}});
  }
  return std::move(work);
}

CudaWork lstm_grad(const Node& node) {
  const Lstm s(node);
  const std::int64_t units = s.batch * s.hidden, rows = s.steps * s.batch;
  std::size_t next = 7;  // index of the next gradient that exists
  const auto given = [&](const char* which) {
    return node.attributes().get<bool>(which) ? std::optional(next++) : std::nullopt;
  };
  const auto d_outputs = given("has_outputs"), d_h = given("has_h"), d_c = given("has_c");
  Products products(s.rounds);
  CudaWork& work = products.work;
  work.source = work.source + kCells + kSumColumns;
  work.scratch_bytes = s.gates(s.steps);
  const auto begin = [&](std::size_t output, std::optional<std::size_t> input) {
    work.launches.push_back(
        {"begin_gradient",
         blocks_for(units),
         {A::output(output), input ? A::input(*input) : A::null(), A::integer(units)}});
  };
  begin(1, d_h);
  begin(2, d_c);
  for (std::int64_t t = s.steps - 1; t >= 0; --t) {
    work.launches.push_back(
        {"cells_grad",
         blocks_for(units),
         {A::scratch(s.gates(t)), A::output(2), A::output(1),
          d_outputs ? A::input(*d_outputs, s.state(t)) : A::null(), A::input(5, s.gates(t)),
          A::input(6, s.state(t)), t == 0 ? A::input(2) : A::input(6, s.state(t - 1)),
          A::integer(units), A::integer(s.hidden)}});
    products.add(A::output(1), A::scratch(s.gates(t)), A::input(3, s.hidden_weights()),
                 s.backward(s.batch, s.hidden));
  }
  const A of_hidden = A::output(3, s.hidden_weights());
  products.add(A::output(0), A::scratch(0), A::input(3), s.backward(rows, s.inputs));
  products.add(A::output(3), A::input(0), A::scratch(0), s.of_weights(rows, s.inputs, false));
  products.add(of_hidden, A::input(1), A::scratch(0), s.of_weights(s.batch, s.hidden, false));
  products.add(of_hidden, A::input(4), A::scratch(s.gates(1)),
               s.of_weights(rows - s.batch, s.hidden, true));
  sum_columns(work, A::output(4), A::scratch(0), rows, 4 * s.hidden);
  return std::move(work);
}

}  // namespace

std::optional<CudaWork> product_work(const Node& node) {
  const std::string& op = node.op().name;
  if (op == "matmul" || op == "batch_matmul" || op == "matmul_bfloat16") return matmul(node);
  if (op == "matmul_bias") return matmul_bias(node);
  if (op == "lstm") return lstm(node);
  if (op == "lstm_grad") return lstm_grad(node);
  return {};
}

}  // namespace paceline::cuda
