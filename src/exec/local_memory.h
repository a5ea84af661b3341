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
  /// Of all locals of `graph`; zero.
  LocalMemory(const Graph& graph, Device& device);
  /// Throws kNotFound.
  TensorView view(std::string_view name) const;
  bool contains(std::string_view name) const { return views_.contains(name); }
  const std::map<std::string, TensorView, std::less<>>& views() const { return views_; }
  /// All back to zero.
  void reset();

 private:
  Buffer memory_;
  std::map<std::string, TensorView, std::less<>> views_;
};

}  // namespace paceline
