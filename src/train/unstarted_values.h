// The values of a session that was not started: zeros.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "paceline/graph.h"
#include "paceline/tensor.h"

namespace paceline {

class UnstartedValues {
 public:
  /// The views are valid until the next call for the same graph.
  std::span<const TensorView> of(const Graph& graph, std::span<const Value> fetches) {
    Zeros& zeros = by_graph_[&graph];
    zeros = {};
    for (const Value& value : fetches) zeros.tensors.emplace_back(value.dtype(), value.shape());
    for (const Tensor& tensor : zeros.tensors) zeros.views.push_back(tensor.view());
    return zeros.views;
  }

 private:
  struct Zeros {
    std::vector<Tensor> tensors;
    std::vector<TensorView> views;
  };
  std::map<const Graph*, Zeros> by_graph_;
};

}  // namespace paceline
