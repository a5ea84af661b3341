// The memory of a graph's local variables in this task, which all plans of the graph share.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "kernels/device.h"
#include "paceline/tensor.h"

namespace paceline {

class LocalMemory {
 public:
  /// Makes all locals of `graph` in memory of `device`, which must outlive it, and sets them to
  /// zero.
  LocalMemory(const Graph& graph, Device& device);
  /// Returns the local in the device's memory. Throws kNotFound.
  TensorView view(std::string_view name) const;
  bool contains(std::string_view name) const { return views_.contains(name); }
  const std::map<std::string, TensorView, std::less<>>& views() const { return views_; }
  /// Returns a copy of the local as the steps so far have left it. Throws kNotFound.
  Tensor read(std::string_view name) const;
  /// Sets the local to `value`, which must have its type and shape. Throws kNotFound.
  void write(std::string_view name, const Tensor& value);
  /// Sets all locals to zero.
  void reset();

 private:
  Device& device_;
  Buffer memory_;
  std::map<std::string, TensorView, std::less<>> views_;
};

}  // namespace paceline
