// The local variables of one graph: this task's memory, shared by all plans of that graph.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "kernels/device.h"
#include "paceline/tensor.h"

namespace paceline {

class LocalMemory {
 public:
  /// Of all locals of `graph`; zero, in memory of `device`, which must outlive it.
  LocalMemory(const Graph& graph, Device& device);
  /// In the device's memory. Throws kNotFound.
  TensorView view(std::string_view name) const;
  bool contains(std::string_view name) const { return views_.contains(name); }
  const std::map<std::string, TensorView, std::less<>>& views() const { return views_; }
  /// A copy of the local as the steps so far have left it. Throws kNotFound.
  Tensor read(std::string_view name) const;
  /// `value` has its type and shape. Throws kNotFound.
  void write(std::string_view name, const Tensor& value);
  /// All back to zero.
  void reset();

 private:
  Device& device_;
  Buffer memory_;
  std::map<std::string, TensorView, std::less<>> views_;
};

}  // namespace paceline
