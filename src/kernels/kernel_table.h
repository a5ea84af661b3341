// The kernels of a device: a map from op name to factory, filled by explicit lists.
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
  /// Returns null if the factory cannot handle the node's types or shapes; the device then asks the
  /// next table. Node and pool outlive the kernel.
  using Factory = std::unique_ptr<Kernel> (*)(const Node&, ThreadPool&);

  /// Adds an op, which must be new.
  void add(std::string_view op, Factory factory);
  /// Returns null if the op is not in the table.
  Factory find(std::string_view op) const;

 private:
  std::map<std::string, Factory, std::less<>> factories_;
};

/// Makes a kernel of a class with a constructor (const Node&, ThreadPool&).
template <typename K>
std::unique_ptr<Kernel> make_kernel_of(const Node& node, ThreadPool& pool) {
  return std::make_unique<K>(node, pool);
}

/// Makes a kernel of class K if the node's outputs are float32; returns null for other types.
template <typename K>
std::unique_ptr<Kernel> make_float_kernel_of(const Node& node, ThreadPool& pool) {
  for (const ValueType& type : node.outputs()) {
    if (type.dtype != DType::kFloat32) return nullptr;
  }
  return std::make_unique<K>(node, pool);
}

/// A kernel that runs a plain function on the calling thread.
class PlainKernel : public Kernel {
 public:
  using Function = void (*)(const Node&, const KernelCall&);
  PlainKernel(const Node& node, Function function) : node_(node), function_(function) {}
  void run(const KernelCall& call) override { function_(node_, call); }

 private:
  const Node& node_;
  Function function_;
};

/// Makes a kernel that calls `F<T>::run(node, call)`, where T is float or double as output 0's type
/// says. Returns null for other types.
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
