#include <fmt/format.h>

#include "kernels/testing/op_cases.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

void add_lookup(OpCases& cases, const Shape& table, const Shape& ids, const char* label) {
  OpCase c;
  c.op = "embedding_lookup";
  c.label = label;
  c.inputs = {floats(table), integers(ids, 0, table[0])};
  c.build = [](Graph&, std::span<const Value> in) {
    return std::vector<Value>{embedding_lookup(in[0], in[1])};
  };
  c.check_gradient = table.elements() <= 100;
  cases.push_back(std::move(c));
}

// The table has fewer rows than there are ids, so some ids repeat.
void add_row_cases(OpCases& cases, std::int64_t table_rows, const Shape& rows, const char* label) {
  OpCase c;
  c.op = "sum_rows";
  c.label = label;
  c.inputs = {integers(Shape{rows[0]}, 0, table_rows), floats(rows)};
  c.build = [table_rows](Graph& graph, std::span<const Value> in) {
    const Node& node = graph.add("sum_rows", in, {{"table_rows", table_rows}});
    return std::vector<Value>{node.output(0), node.output(1), node.output(2)};
  };
  c.tolerance = 0;  // both add in one order
  cases.push_back(c);

  c.op = "scatter_rows";
  c.build = [table_rows](Graph& graph, std::span<const Value> in) {
    return std::vector<Value>{graph.apply("scatter_rows", {in[0], in[1]}, {{"rows", table_rows}})};
  };
  c.check_gradient = rows.elements() <= 100;
  cases.push_back(std::move(c));
}

}  // namespace

void add_embedding_cases(OpCases& cases) {
  add_lookup(cases, Shape{1, 1}, Shape{}, "scalar_id");
  add_lookup(cases, Shape{7, 3}, Shape{2, 5}, "7x3_2x5");
  add_lookup(cases, Shape{5, 2, 3}, Shape{4}, "5x2x3_4");
  add_lookup(cases, Shape{6}, Shape{3}, "no_columns");
  add_lookup(cases, Shape{4, 3}, Shape{0}, "no_ids");
  add_lookup(cases, Shape{1000, 33}, Shape{20, 31}, "1000x33");
  add_row_cases(cases, 1, Shape{1, 1}, "one");
  add_row_cases(cases, 4, Shape{9, 3}, "9x3_into_4");
  add_row_cases(cases, 30, Shape{6, 2, 2}, "6x2x2_into_30");
  add_row_cases(cases, 3, Shape{0, 5}, "no_rows");
  add_row_cases(cases, 200, Shape{400, 67}, "400x67_into_200");
}

}  // namespace paceline
