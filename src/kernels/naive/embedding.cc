#include <algorithm>

#include "kernels/index_check.h"
#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

std::span<const std::int32_t> ids_of(const TensorView& view) {
  return {view.as<std::int32_t>(), std::size_t(view.shape.elements())};
}

std::int64_t row_size(const Shape& rows) {
  std::int64_t size = 1;
  for (std::int64_t dim : rows.dims().subspan(1)) size *= dim;
  return size;
}

template <typename T>
struct NaiveEmbeddingLookup {
  static void run(const Node& node, const KernelCall& call) {
    const auto ids = ids_of(call.inputs[1]);
    check_indices(node, "id", ids, call.inputs[0].shape[0]);
    const std::int64_t size = row_size(call.inputs[0].shape);
    T* out = call.outputs[0].as<T>();
    for (std::int32_t id : ids) {
      out = std::copy_n(call.inputs[0].as<T>() + id * size, size, out);
    }
  }
};

template <typename T>
struct NaiveScatterRows {
  static void run(const Node& node, const KernelCall& call) {
    const auto ids = ids_of(call.inputs[0]);
    check_indices(node, "id", ids, call.outputs[0].shape[0]);
    const std::int64_t size = row_size(call.outputs[0].shape);
    T* out = call.outputs[0].as<T>();
    std::fill_n(out, call.outputs[0].shape.elements(), T(0));
    const T* row = call.inputs[1].as<T>();
    for (std::int32_t id : ids) {
      for (std::int64_t j = 0; j < size; ++j) out[id * size + j] += *row++;
    }
  }
};

constexpr std::int64_t kNone = std::int64_t{1} << 32;

// Returns the smallest id above `before`, or kNone.
std::int64_t next_id(std::span<const std::int32_t> ids, std::int64_t before) {
  std::int64_t next = kNone;
  for (const std::int32_t id : ids) {
    if (id > before) next = std::min<std::int64_t>(next, id);
  }
  return next;
}

template <typename T>
struct NaiveSumRows {
  static void run(const Node& node, const KernelCall& call) {
    const auto ids = ids_of(call.inputs[0]);
    check_indices(node, "id", ids, node.attributes().get<std::int64_t>("table_rows"));
    const std::int64_t size = row_size(call.inputs[1].shape);
    std::fill_n(call.outputs[0].as<std::int32_t>(), ids.size(), 0);
    std::fill_n(call.outputs[1].as<T>(), call.outputs[1].shape.elements(), T(0));
    std::int64_t count = 0;
    for (std::int64_t id = next_id(ids, -1); id < kNone; id = next_id(ids, id)) {
      call.outputs[0].as<std::int32_t>()[count] = std::int32_t(id);
      T* sum = call.outputs[1].as<T>() + count++ * size;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const T* row = call.inputs[1].as<T>() + std::int64_t(i) * size;
        for (std::int64_t j = 0; j < size && ids[i] == id; ++j) sum[j] += row[j];
      }
    }
    *call.outputs[2].as<std::int32_t>() = std::int32_t(count);
  }
};

// Chooses by the type of the rows, since output 0 holds ids.
std::unique_ptr<Kernel> make_sum_rows(const Node& node, ThreadPool&) {
  switch (node.outputs()[1].dtype) {
    case DType::kFloat32:
      return std::make_unique<PlainKernel>(node, &NaiveSumRows<float>::run);
    case DType::kFloat64:
      return std::make_unique<PlainKernel>(node, &NaiveSumRows<double>::run);
    default:
      return nullptr;
  }
}

}  // namespace

void add_naive_embedding_kernels(KernelTable& table) {
  table.add("embedding_lookup", make_naive_kernel_of<NaiveEmbeddingLookup>);
  table.add("scatter_rows", make_naive_kernel_of<NaiveScatterRows>);
  table.add("sum_rows", make_sum_rows);
}

}  // namespace paceline
