#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/index_check.h"

namespace paceline {

namespace {

// The base class of kernels on rows of one size; it checks the ids of the rows.
class RowCopyKernel : public Kernel {
 public:
  RowCopyKernel(const Node& node, ThreadPool& pool, const Shape& rows)
      : node_(node), pool_(pool), size_(1) {
    for (std::int64_t dim : rows.dims().subspan(1)) size_ *= dim;
    grain_ = std::max<std::int64_t>(1, kRowsGrain / std::max<std::int64_t>(size_, 1));
  }

 protected:
  std::span<const std::int32_t> checked_ids(const TensorView& view, std::int64_t limit) const {
    const std::span<const std::int32_t> ids(view.as<std::int32_t>(),
                                            std::size_t(view.shape.elements()));
    check_indices(node_, "id", ids, limit);
    return ids;
  }
  void copy_row(const float* from, float* to) const {
    std::memcpy(to, from, std::size_t(size_) * sizeof(float));
  }
  void add_row(const float* from, float* to) const {
    vector_binary(BinaryFunction::kAdd, 0, {to}, {from}, to, size_);
  }

  const Node& node_;
  ThreadPool& pool_;
  std::int64_t size_, grain_;
};

class EmbeddingLookupKernel : public RowCopyKernel {
 public:
  EmbeddingLookupKernel(const Node& node, ThreadPool& pool)
      : RowCopyKernel(node, pool, node.input(0).shape()) {}

  void run(const KernelCall& call) override {
    const auto ids = checked_ids(call.inputs[1], call.inputs[0].shape[0]);
    const float* table = call.inputs[0].as<float>();
    float* out = call.outputs[0].as<float>();
    const auto copy = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        copy_row(table + ids[std::size_t(i)] * size_, out + i * size_);
      }
    };
    pool_.parallel_for(std::int64_t(ids.size()), grain_, copy);
  }
};

class ScatterRowsKernel : public RowCopyKernel {
 public:
  ScatterRowsKernel(const Node& node, ThreadPool& pool)
      : RowCopyKernel(node, pool, node.input(1).shape()) {}

  // For each range of the table, a thread reads all ids and adds the rows of this range. So rows
  // are added in the same order on any number of threads. Reading all ids costs little beside
  // writing the table.
  void run(const KernelCall& call) override {
    const std::int64_t rows = call.outputs[0].shape[0];
    const auto ids = checked_ids(call.inputs[0], rows);
    float* out = call.outputs[0].as<float>();
    const auto scatter = [&](std::int64_t begin, std::int64_t end) {
      std::fill(out + begin * size_, out + end * size_, 0.0f);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < begin || ids[i] >= end) continue;
        add_row(call.inputs[1].as<float>() + std::int64_t(i) * size_, out + ids[i] * size_);
      }
    };
    pool_.parallel_for(rows, grain_, scatter);
  }
};

class SumRowsKernel : public RowCopyKernel {
 public:
  SumRowsKernel(const Node& node, ThreadPool& pool)
      : RowCopyKernel(node, pool, node.input(1).shape()),
        table_rows_(node.attributes().get<std::int64_t>("table_rows")) {}

  std::size_t scratch_bytes() const override {
    const auto ids = std::size_t(node_.input(0).shape().elements());
    return ids * sizeof(Entry) + (ids + 1) * sizeof(std::int32_t);
  }

  void run(const KernelCall& call) override {
    const auto ids = checked_ids(call.inputs[0], table_rows_);
    const std::span entries(reinterpret_cast<Entry*>(call.scratch.data()), ids.size());
    const std::span starts(reinterpret_cast<std::int32_t*>(entries.data() + entries.size()),
                           ids.size() + 1);
    const std::int64_t count = group(ids, entries, starts);
    auto* unique = call.outputs[0].as<std::int32_t>();
    const auto sum = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        const auto own = k < count ? group_of(entries, starts, k) : std::span<const Entry>();
        unique[k] = own.empty() ? 0 : id_of(own[0]);
        sum_group(call, k, own);
      }
    };
    pool_.parallel_for(std::int64_t(ids.size()), grain_, sum);
    *call.outputs[2].as<std::int32_t>() = std::int32_t(count);
  }

 private:
  // An id and its position: after sorting, rows of one id lie together in the order of appearance.
  using Entry = std::uint64_t;
  static std::int32_t id_of(Entry entry) { return std::int32_t(entry >> 32); }
  static std::int64_t place_of(Entry entry) { return std::int64_t(entry & 0xffffffff); }

  // Returns the number of unique ids; entries [starts[k], starts[k + 1]) are those of the k-th
  // unique id.
  static std::int64_t group(std::span<const std::int32_t> ids, std::span<Entry> entries,
                            std::span<std::int32_t> starts) {
    for (std::size_t i = 0; i < ids.size(); ++i) entries[i] = Entry(ids[i]) << 32 | i;
    std::sort(entries.begin(), entries.end());
    std::size_t count = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i == 0 || id_of(entries[i]) != id_of(entries[i - 1])) starts[count++] = std::int32_t(i);
    }
    starts[count] = std::int32_t(entries.size());
    return std::int64_t(count);
  }

  static std::span<const Entry> group_of(std::span<const Entry> entries,
                                         std::span<const std::int32_t> starts, std::int64_t k) {
    const std::int32_t begin = starts[std::size_t(k)], end = starts[std::size_t(k) + 1];
    return entries.subspan(std::size_t(begin), std::size_t(end - begin));
  }

  void sum_group(const KernelCall& call, std::int64_t k, std::span<const Entry> group) const {
    const float* rows = call.inputs[1].as<float>();
    float* out = call.outputs[1].as<float>() + k * size_;
    if (group.empty()) {
      std::fill_n(out, size_, 0.0f);
      return;
    }
    copy_row(rows + place_of(group[0]) * size_, out);
    for (const Entry entry : group.subspan(1)) add_row(rows + place_of(entry) * size_, out);
  }

  const std::int64_t table_rows_;
};

// Chooses by the type of the rows, since output 0 holds ids.
std::unique_ptr<Kernel> make_sum_rows(const Node& node, ThreadPool& pool) {
  if (node.outputs()[1].dtype != DType::kFloat32) return nullptr;
  return std::make_unique<SumRowsKernel>(node, pool);
}

}  // namespace

void add_cpu_embedding_kernels(KernelTable& table) {
  table.add("embedding_lookup", make_float_kernel_of<EmbeddingLookupKernel>);
  table.add("scatter_rows", make_float_kernel_of<ScatterRowsKernel>);
  table.add("sum_rows", make_sum_rows);
}

}  // namespace paceline
