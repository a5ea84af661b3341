// Rows of tables: embeddings with their gradients, and one-hot rows. Rows of equal ids are added in
// the order in which they appear, so each run gives the same bits.
#include "kernels/cuda/cuda_work.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

const char* const kTableSource = R"(
extern "C" __global__ void lookup(float* y, const float* table, const int* ids, i64 count, i64 size,
                                  i64 limit, u64* fault) {
  for (i64 i = blockIdx.x; i < count; i += gridDim.x) {
    const bool known = in_range(ids[i], i, limit, fault);
    for (i64 j = threadIdx.x; j < size; j += blockDim.x) {
      y[i * size + j] = known ? table[ids[i] * size + j] : 0.0f;
    }
  }
}
extern "C" __global__ void clear(float* y, i64 n) { EACH(i, n) y[i] = 0.0f; }
// A thread has a column.
extern "C" __global__ void scatter_rows(float* y, const int* ids, const float* rows, i64 count,
                                        i64 size, i64 limit, u64* fault) {
  EACH(j, size) {
    for (i64 i = 0; i < count; ++i) {
      if (in_range(ids[i], i, limit, fault)) y[ids[i] * size + j] += rows[i * size + j];
    }
  }
}
// Which ids stand for the first time; ids out of range count as none.
extern "C" __global__ void first_ids(int* first, int* ids_out, const int* ids, i64 count, i64 limit,
                                     u64* fault) {
  EACH(i, count) {
    bool is_first = in_range(ids[i], i, limit, fault);
    for (i64 k = 0; k < i && is_first; ++k) is_first = ids[k] != ids[i];
    first[i] = is_first;
    ids_out[i] = 0;
  }
}
// The place of each such id among them.
extern "C" __global__ void rank_ids(int* ranks, int* ids_out, int* number, const int* first,
                                    const int* ids, i64 count) {
  EACH(i, count) {
    int rank = 0, all = 0;
    for (i64 k = 0; k < count; ++k) {
      rank += first[k] && ids[k] < ids[i];
      all += first[k];
    }
    ranks[i] = rank;
    if (first[i]) ids_out[rank] = ids[i];
    if (i == 0) number[0] = all;
  }
}
extern "C" __global__ void sum_rows(float* y, const int* first, const int* ranks, const int* ids,
                                    const float* rows, i64 count, i64 size) {
  for (i64 i = blockIdx.x; i < count; i += gridDim.x) {
    if (!first[i]) continue;
    for (i64 j = threadIdx.x; j < size; j += blockDim.x) {
      float sum = 0;
      for (i64 k = i; k < count; ++k) {
        if (ids[k] == ids[i]) sum += rows[k * size + j];
      }
      y[ranks[i] * size + j] = sum;
    }
  }
}
extern "C" __global__ void one_hot(float* y, const int* ids, i64 count, i64 depth, u64* fault) {
  EACH(i, count) {
    const bool known = in_range(ids[i], i, depth, fault);
    for (i64 j = 0; j < depth; ++j) y[i * depth + j] = known && j == ids[i] ? 1.0f : 0.0f;
  }
}
)";

using A = CudaArgument;

std::int64_t row_size(const Shape& rows) {
  std::int64_t size = 1;
  for (const std::int64_t dim : rows.dims().subspan(1)) size *= dim;
  return size;
}

CudaLaunch clear(std::size_t output, std::int64_t n) {
  return {"clear", blocks_for(n), {A::output(output), A::integer(n)}};
}

CudaWork sum_rows(const Node& node) {
  const std::int64_t count = node.input(0).shape().elements();
  const std::int64_t size = row_size(node.input(1).shape());
  const std::int64_t limit = node.attributes().get<std::int64_t>("table_rows");
  const std::size_t ranks = std::size_t(count) * sizeof(int);
  CudaWork work{kTableSource, {}, 2 * ranks, CudaFault{"id", limit}};
  work.launches = {clear(1, node.outputs()[1].shape.elements()),
                   clear(2, 1),  // the number of ids stays 0 if there are none
                   {"first_ids",
                    blocks_for(count),
                    {A::scratch(0), A::output(0), A::input(0), A::integer(count), A::integer(limit),
                     A::fault()}},
                   {"rank_ids",
                    blocks_for(count),
                    {A::scratch(ranks), A::output(0), A::output(2), A::scratch(0), A::input(0),
                     A::integer(count)}},
                   {"sum_rows",
                    count,
                    {A::output(1), A::scratch(0), A::scratch(ranks), A::input(0), A::input(1),
                     A::integer(count), A::integer(size)}}};
  return work;
}

}  // namespace

std::optional<CudaWork> table_work(const Node& node) {
  const std::string& op = node.op().name;
  if (op == "embedding_lookup") {
    const Shape& table = node.input(0).shape();
    const std::int64_t count = node.input(1).shape().elements();
    return CudaWork{kTableSource,
                    {{"lookup",
                      count,
                      {A::output(0), A::input(0), A::input(1), A::integer(count),
                       A::integer(row_size(table)), A::integer(table[0]), A::fault()}}},
                    0,
                    CudaFault{"id", table[0]}};
  }
  if (op == "scatter_rows") {
    const Shape& table = node.outputs()[0].shape;
    const std::int64_t count = node.input(0).shape().elements(), size = row_size(table);
    return CudaWork{kTableSource,
                    {clear(0, table.elements()),
                     {"scatter_rows",
                      blocks_for(size),
                      {A::output(0), A::input(0), A::input(1), A::integer(count), A::integer(size),
                       A::integer(table[0]), A::fault()}}},
                    0,
                    CudaFault{"id", table[0]}};
  }
  if (op == "sum_rows") return sum_rows(node);
  if (op == "one_hot") {
    const std::int64_t depth = node.outputs()[0].shape[-1];
    const std::int64_t count = node.input(0).shape().elements();
    return CudaWork{
        kTableSource,
        {{"one_hot",
          blocks_for(count),
          {A::output(0), A::input(0), A::integer(count), A::integer(depth), A::fault()}}},
        0,
        CudaFault{"id", depth}};
  }
  return {};
}

}  // namespace paceline::cuda
