// Ops on rows of a table: reading rows, and adding gradients to rows.
#include <fmt/format.h>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::vector<std::int64_t> tail_of(const Shape& shape) {
  const auto dims = shape.dims();
  return {dims.begin() + 1, dims.end()};
}

Shape rows_shape(std::int64_t rows, const Shape& row_of) {
  std::vector<std::int64_t> dims = tail_of(row_of);
  dims.insert(dims.begin(), rows);
  return Shape(dims);
}

std::vector<ValueType> infer_embedding_lookup(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, 1);
  expect_int32(in, 1, "ids");
  if (in.shape(0).rank() < 1) in.fail("the table is a scalar");
  const auto ids = in.shape(1).dims();
  std::vector<std::int64_t> dims(ids.begin(), ids.end());
  for (std::int64_t dim : tail_of(in.shape(0))) dims.push_back(dim);
  return {{in.dtype(0), Shape(dims)}};
}

std::vector<Gradient> embedding_lookup_gradient(const Node& node,
                                                std::span<const Value> output_gradients) {
  if (!output_gradients[0]) return {{}, {}};
  const std::int64_t count = node.input(1).shape().elements();
  const Shape rows = rows_shape(count, node.input(0).shape());
  const std::int64_t flat[] = {count};
  Gradient table;
  table.ids = reshape(node.input(1), flat);
  table.rows = reshape(output_gradients[0], rows.dims());
  return {table, {}};
}

// Inputs: ids (n) and rows (n,…) of a table. The attribute that `table` names is the table's number
// of rows. Returns this number.
std::int64_t expect_rows(const OpInputs& in, const std::string& table) {
  in.expect_count(2);
  expect_int32(in, 0, "ids");
  expect_rank(in, 0, "ids", 1);
  if (!is_floating(in.dtype(1)) || in.shape(1).rank() < 1 || in.shape(1)[0] != in.shape(0)[0]) {
    in.fail(fmt::format("ids {} do not fit rows {}", in.types[0].str(), in.types[1].str()));
  }
  const std::int64_t rows = in.attributes.get<std::int64_t>(table);
  if (rows < 0) in.fail(fmt::format("{} is {}", table, rows));
  return rows;
}

// Outputs: unique ascending ids (n), the sums of their rows (n,…), and how many of these are valid;
// all others are zero.
std::vector<ValueType> infer_sum_rows(const OpInputs& in) {
  expect_rows(in, "table_rows");
  return {in.types[0], in.types[1], {DType::kInt32, Shape{}}};
}

std::vector<ValueType> infer_scatter_rows(const OpInputs& in) {
  const std::int64_t rows = expect_rows(in, "rows");
  return {{in.dtype(1), rows_shape(rows, in.shape(1))}};
}

std::vector<Gradient> scatter_rows_gradient(const Node& node,
                                            std::span<const Value> output_gradients) {
  if (!output_gradients[0]) return {{}, {}};
  Gradient rows;
  rows.dense = embedding_lookup(output_gradients[0], node.input(0));
  return {{}, rows};
}

Cost lookup_cost(const Node& node) {
  // The cost counts only the rows of the table that are read.
  const Value ids = node.input(1);
  const ValueType& rows = node.outputs()[0];
  return {0, 2.0 * double(rows.shape.elements()) * double(size_of(rows.dtype)) +
                 4.0 * double(ids.shape().elements())};
}

Cost add_cost(const Node& node) {
  return {double(node.input(1).shape().elements()), moved_bytes(node)};
}

}  // namespace

void add_embedding_ops(OpRegistry& ops) {
  Op lookup;
  lookup.name = "embedding_lookup";
  lookup.infer = infer_embedding_lookup;
  lookup.gradient = embedding_lookup_gradient;
  lookup.cost = lookup_cost;
  ops.add(std::move(lookup));

  Op sum;
  sum.name = "sum_rows";
  sum.infer = infer_sum_rows;
  sum.no_gradient = "it prepares sparse gradients";
  sum.cost = add_cost;
  ops.add(std::move(sum));

  Op scatter;
  scatter.name = "scatter_rows";
  scatter.infer = infer_scatter_rows;
  scatter.gradient = scatter_rows_gradient;
  scatter.cost = add_cost;
  ops.add(std::move(scatter));
}

Value embedding_lookup(Value table, Value ids) {
  return table.graph().apply("embedding_lookup", {table, ids});
}

}  // namespace paceline
