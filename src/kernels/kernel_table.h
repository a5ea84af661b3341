// The kernels of a device by op: op name → factory, filled by explicit lists.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "paceline/graph.h"
#include "paceline/op.h"

namespace paceline {

class KernelTable {
 public:
  /// Null when it cannot do the node's types or shapes: the device then asks the table behind.
  /// Node and pool outlive the kernel.
  using Factory = std::unique_ptr<Kernel> (*)(const Node&, ThreadPool&);

  /// An op is added once.
  void add(std::string_view op, Factory factory);
  /// Null when the op is not in the table.
  Factory find(std::string_view op) const;

 private:
  std::map<std::string, Factory, std::less<>> factories_;
};

/// For a kernel class with a constructor (const Node&, ThreadPool&).
template <typename K>
std::unique_ptr<Kernel> make_kernel_of(const Node& node, ThreadPool& pool) {
  return std::make_unique<K>(node, pool);
}

/// The same, for kernels that compute in float32 only.
template <typename K>
std::unique_ptr<Kernel> make_float_kernel_of(const Node& node, ThreadPool& pool) {
  for (const ValueType& type : node.outputs()) {
    if (type.dtype != DType::kFloat32) return nullptr;
  }
  return std::make_unique<K>(node, pool);
}

/// A plain function of node and views as a kernel, on the calling thread.
class PlainKernel : public Kernel {
 public:
  using Function = void (*)(const Node&, const KernelCall&);
  PlainKernel(const Node& node, Function function) : node_(node), function_(function) {}
  void run(const KernelCall& call) override { function_(node_, call); }

 private:
  const Node& node_;
  Function function_;
};

/// For naive kernels: `F<T>::run(node, call)` for float and double, chosen by output 0's type.
template <template <typename> class F>
std::unique_ptr<Kernel> make_naive_kernel_of(const Node& node, ThreadPool&) {
  switch (node.outputs()[0].dtype) {
    case DType::kFloat32:
      return std::make_unique<PlainKernel>(node, &F<float>::run);
    case DType::kFloat64:
      return std::make_unique<PlainKernel>(node, &F<double>::run);
    default:
      return nullptr;
  }
}

}  // namespace paceline
