#include <fmt/format.h>

#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

// Both kernels get inputs rounded to bfloat16, so that only the order of the sums differs.
void add_bfloat16_case(OpCases& cases, std::int64_t m, std::int64_t k, std::int64_t n, bool ta,
                       bool tb) {
  OpCase c;
  c.op = "matmul_bfloat16";
  c.label = fmt::format("{}x{}x{}{}{}", m, k, n, ta ? "_ta" : "", tb ? "_tb" : "");
  c.inputs = {floats(ta ? Shape{k, m} : Shape{m, k}), floats(tb ? Shape{n, k} : Shape{k, n})};
  for (CaseInput& input : c.inputs) input.type.dtype = DType::kBFloat16;
  c.build = [ta, tb](Graph& graph, std::span<const Value> in) {
    return std::vector<Value>{
        graph.apply("matmul_bfloat16", {in[0], in[1]}, {{"transpose_a", ta}, {"transpose_b", tb}})};
  };
  cases.push_back(std::move(c));
}

// With `dtype` bfloat16, the factors are rounded, as those of matmul_bfloat16 are.
void add_biased_case(OpCases& cases, const Shape& mkn, bool ta, bool tb, bool relu, DType dtype) {
  const std::int64_t m = mkn[0], k = mkn[1], n = mkn[2];
  OpCase c;
  c.op = "matmul_bias";
  c.label = fmt::format("{}x{}x{}{}{}{}{}", m, k, n, ta ? "_ta" : "", tb ? "_tb" : "",
                        relu ? "_relu" : "", dtype == DType::kBFloat16 ? "_bfloat16" : "");
  c.inputs = {floats(ta ? Shape{k, m} : Shape{m, k}), floats(tb ? Shape{n, k} : Shape{k, n}),
              floats({n})};
  for (int i : {0, 1}) c.inputs[std::size_t(i)].type.dtype = dtype;
  c.build = [ta, tb, relu](Graph& graph, std::span<const Value> in) {
    return std::vector<Value>{
        graph.apply("matmul_bias", {in[0], in[1], in[2]},
                    {{"transpose_a", ta}, {"transpose_b", tb}, {"relu", relu}})};
  };
  cases.push_back(std::move(c));
}

void add_case(OpCases& cases, std::int64_t m, std::int64_t k, std::int64_t n, bool ta, bool tb) {
  OpCase c;
  c.op = "matmul";
  c.label = fmt::format("{}x{}x{}{}{}", m, k, n, ta ? "_ta" : "", tb ? "_tb" : "");
  c.inputs = {floats(ta ? Shape{k, m} : Shape{m, k}), floats(tb ? Shape{n, k} : Shape{k, n})};
  c.build = [ta, tb](Graph&, std::span<const Value> in) {
    return std::vector<Value>{matmul(in[0], in[1], ta, tb)};
  };
  c.check_gradient = m * n * k <= 1000;
  cases.push_back(std::move(c));
}

// Adds products of matrices (m,k) and (k,n), one for each index of the leading dimensions.
void add_batch_case(OpCases& cases, const std::vector<std::int64_t>& leading, std::int64_t m,
                    std::int64_t k, std::int64_t n, bool ta, bool tb) {
  const auto shape = [&](std::int64_t rows, std::int64_t columns) {
    std::vector<std::int64_t> dims = leading;
    dims.insert(dims.end(), {rows, columns});
    return Shape(dims);
  };
  OpCase c;
  c.op = "batch_matmul";
  c.label = fmt::format("{}_{}x{}x{}{}{}", fmt::join(leading, "x"), m, k, n, ta ? "_ta" : "",
                        tb ? "_tb" : "");
  c.inputs = {floats(ta ? shape(k, m) : shape(m, k)), floats(tb ? shape(n, k) : shape(k, n))};
  c.build = [ta, tb](Graph&, std::span<const Value> in) {
    return std::vector<Value>{matmul(in[0], in[1], ta, tb)};
  };
  c.check_gradient = m * n * k <= 100;
  cases.push_back(std::move(c));
}

}  // namespace

void add_matmul_cases(OpCases& cases) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      add_case(cases, 1, 1, 1, ta, tb);
      add_case(cases, 3, 5, 7, ta, tb);
      add_case(cases, 1, 9, 1, ta, tb);
      add_case(cases, 4, 1, 6, ta, tb);
      add_case(cases, 0, 3, 2, ta, tb);
      add_case(cases, 3, 0, 2, ta, tb);
      add_case(cases, 2, 3, 0, ta, tb);
      add_case(cases, 33, 65, 17, ta, tb);
      add_batch_case(cases, {1}, 1, 1, 1, ta, tb);
      add_batch_case(cases, {2, 3}, 2, 5, 3, ta, tb);
      add_batch_case(cases, {2}, 3, 0, 2, ta, tb);
      add_batch_case(cases, {0}, 3, 2, 2, ta, tb);
      add_batch_case(cases, {2}, 147, 61, 301, ta, tb);
      add_batch_case(cases, {17}, 33, 65, 17, ta, tb);
      // These sizes are large enough to be cut into tiles of unequal sizes.
      add_case(cases, 147, 61, 301, ta, tb);
      for (const bool relu : {false, true}) {
        add_biased_case(cases, {1, 1, 1}, ta, tb, relu, DType::kFloat32);
        add_biased_case(cases, {3, 5, 7}, ta, tb, relu, DType::kFloat32);
        add_biased_case(cases, {0, 3, 2}, ta, tb, relu, DType::kFloat32);
        add_biased_case(cases, {3, 0, 2}, ta, tb, relu, DType::kFloat32);
        add_biased_case(cases, {33, 65, 17}, ta, tb, relu, DType::kFloat32);
        add_biased_case(cases, {33, 65, 17}, ta, tb, relu, DType::kBFloat16);
      }
      add_bfloat16_case(cases, 1, 1, 1, ta, tb);
      add_bfloat16_case(cases, 3, 5, 7, ta, tb);
      add_bfloat16_case(cases, 0, 3, 2, ta, tb);
      add_bfloat16_case(cases, 3, 0, 2, ta, tb);
      add_bfloat16_case(cases, 33, 65, 17, ta, tb);
      add_bfloat16_case(cases, 147, 61, 301, ta, tb);
    }
  }
}

}  // namespace paceline
