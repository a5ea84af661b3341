#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ops/broadcast_shape.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

Shape product_shape(const OpInputs& in) {
  const Shape &a = in.shape(0), &b = in.shape(1);
  const bool transpose_a = in.attributes.get<bool>("transpose_a");
  const bool transpose_b = in.attributes.get<bool>("transpose_b");
  if (a.rank() != 2 || b.rank() != 2 || a[transpose_a ? 0 : 1] != b[transpose_b ? 1 : 0]) {
    in.fail(fmt::format("cannot multiply {}{} by {}{}", a.str(), transpose_a ? "ᵀ" : "", b.str(),
                        transpose_b ? "ᵀ" : ""));
  }
  return Shape{a[transpose_a ? 1 : 0], b[transpose_b ? 0 : 1]};
}

/// Returns the dimensions `leading`, followed by those of a matrix.
Shape batch_shape(std::span<const std::int64_t> leading, std::int64_t rows, std::int64_t columns) {
  std::vector<std::int64_t> dims(leading.begin(), leading.end());
  dims.push_back(rows);
  dims.push_back(columns);
  return Shape(dims);
}

std::span<const std::int64_t> leading_dims(const Shape& x) {
  return x.dims().first(x.dims().size() - 2);
}

std::vector<ValueType> infer_batch_matmul(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, 2);
  const Shape &a = in.shape(0), &b = in.shape(1);
  const bool transpose_a = in.attributes.get<bool>("transpose_a");
  const bool transpose_b = in.attributes.get<bool>("transpose_b");
  const bool batches =
      a.rank() >= 3 && a.rank() == b.rank() && std::ranges::equal(leading_dims(a), leading_dims(b));
  if (!batches || a[transpose_a ? -2 : -1] != b[transpose_b ? -1 : -2]) {
    in.fail(fmt::format("cannot multiply {}{} by {}{}", a.str(), transpose_a ? "ᵀ" : "", b.str(),
                        transpose_b ? "ᵀ" : ""));
  }
  return {{in.dtype(0),
           batch_shape(leading_dims(a), a[transpose_a ? -1 : -2], b[transpose_b ? -2 : -1])}};
}

std::vector<ValueType> infer_matmul(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, 2);
  return {{in.dtype(0), product_shape(in)}};
}

// The result is float32, since a sum of many products needs more digits than its factors have.
std::vector<ValueType> infer_bfloat16_matmul(const OpInputs& in) {
  in.expect_count(2);
  for (int i = 0; i < 2; ++i) {
    if (in.dtype(i) == DType::kBFloat16) continue;
    in.fail(fmt::format("input {} is {}; bfloat16 is needed", i, in.types[std::size_t(i)].str()));
  }
  return {{DType::kFloat32, product_shape(in)}};
}

// The attribute "relu" says whether what is below 0 becomes 0 after the bias is added.
std::vector<ValueType> infer_matmul_bias(const OpInputs& in) {
  in.expect_count(3);
  const bool rounded = in.dtype(0) == DType::kBFloat16 && in.dtype(1) == DType::kBFloat16;
  if (!rounded) expect_one_float_type(in, 2);
  const Shape c = product_shape(in), &bias = in.shape(2);
  in.attributes.get<bool>("relu");
  const DType dtype = rounded ? DType::kFloat32 : in.dtype(0);
  if (in.dtype(2) != dtype || bias.rank() != 1 || bias[0] != c[1]) {
    in.fail("cannot add " + in.types[2].str() + " to the rows of " + ValueType{dtype, c}.str());
  }
  return {{dtype, c}};
}

std::vector<Gradient> matmul_gradient(const Node& node, std::span<const Value> output_gradients) {
  const Value dc = output_gradients[0];
  if (!dc) return {{}, {}};
  const Value a = node.input(0), b = node.input(1);
  const bool ta = node.attributes().get<bool>("transpose_a");
  const bool tb = node.attributes().get<bool>("transpose_b");
  const Value da = ta ? matmul(b, dc, tb, true) : matmul(dc, b, false, !tb);
  const Value db = tb ? matmul(dc, a, true, ta) : matmul(a, dc, !ta, false);
  return {da, db};
}

Cost matmul_cost(const Node& node) {
  const bool transpose_a = node.attributes().get<bool>("transpose_a");
  const double inner = double(node.input(0).shape()[transpose_a ? -2 : -1]);
  return {2 * inner * double(node.outputs()[0].shape.elements()), moved_bytes(node)};
}

/// Multiplies all rows of `a` (…,k) by the matrix `b` in one product.
Value rows_by_matrix(Value a, Value b, bool transpose_b) {
  const Shape& shape = a.shape();
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  const Value product = matmul(reshape(a, {rows, shape[-1]}), b, false, transpose_b);
  const Shape result = batch_shape(leading_dims(shape), shape[-2], product.shape()[1]);
  return reshape(product, result.dims());
}

/// Returns x, broadcast to the leading dimensions `leading`.
Value spread_over(Value x, const Shape& leading) {
  const Shape shape = batch_shape(leading.dims(), x.shape()[-2], x.shape()[-1]);
  if (shape == x.shape()) return x;
  return x.graph().apply(
      "broadcast_to", {x},
      {{"shape", std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end())}});
}

Value batch_matmul(Value a, Value b, bool transpose_a, bool transpose_b) {
  const std::optional<Shape> leading =
      a.shape().rank() < 2 || b.shape().rank() < 2
          ? std::nullopt
          : broadcast_shape(Shape(leading_dims(a.shape())), Shape(leading_dims(b.shape())));
  if (leading) {
    a = spread_over(a, *leading);
    b = spread_over(b, *leading);
  }
  return a.graph().apply("batch_matmul", {a, b},
                         {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

}  // namespace

void add_matmul_ops(OpRegistry& ops) {
  Op op;
  op.name = "matmul";
  op.infer = infer_matmul;
  op.gradient = matmul_gradient;
  op.cost = matmul_cost;
  ops.add(std::move(op));

  Op batch;
  batch.name = "batch_matmul";
  batch.infer = infer_batch_matmul;
  batch.gradient = matmul_gradient;
  batch.cost = matmul_cost;
  ops.add(std::move(batch));

  Op bfloat16;
  bfloat16.name = "matmul_bfloat16";
  bfloat16.infer = infer_bfloat16_matmul;
  bfloat16.no_gradient = "it is made by lowering the precision, after differentiation";
  bfloat16.cost = matmul_cost;
  ops.add(std::move(bfloat16));

  Op biased;
  biased.name = "matmul_bias";
  biased.infer = infer_matmul_bias;
  biased.no_gradient = "it is made by fusion, after differentiation";
  biased.cost = matmul_cost;
  ops.add(std::move(biased));
}

Value matmul(Value a, Value b, bool transpose_a, bool transpose_b) {
  const int rank_a = a.shape().rank(), rank_b = b.shape().rank();
  if (rank_a > 2 && rank_b == 2 && !transpose_a) return rows_by_matrix(a, b, transpose_b);
  if (rank_a > 2 || rank_b > 2) return batch_matmul(a, b, transpose_a, transpose_b);
  return a.graph().apply("matmul", {a, b},
                         {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

Value dense(Value x, std::int64_t units, std::string_view name, Initializer weights,
            Initializer biases) {
  Graph& graph = x.graph();
  if (x.shape().rank() < 2 || units < 1) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[dense] '{}' has {} units, and x is {}: there must be a unit, and x must "
                    "have two dimensions or more",
                    name, units, x.shape().str()));
  }
  const auto scope = graph.scope(name);
  const Value w = graph.variable("w", Shape{x.shape()[-1], units}, weights, x.dtype());
  const Value b = graph.variable("b", Shape{units}, biases, x.dtype());
  return bias(matmul(x, w), b);
}

}  // namespace paceline
