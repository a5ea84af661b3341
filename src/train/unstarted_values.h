// The values of a session that was not started: zeros. Open dimensions have their usual size, or 1
// if they have none.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/open_graph.h"
#include "paceline/graph.h"
#include "paceline/tensor.h"

namespace paceline {

class UnstartedValues {
 public:
  /// The views are valid until the next call for the same graph.
  std::span<const TensorView> of(const Graph& graph, std::span<const Value> fetches) {
    Zeros& zeros = by_graph_[&graph];
    zeros = {};
    for (const Value& value : fetches) {
      OpenSizes sizes = graph.usual_sizes();
      for (std::string& name : open_names(std::span(&value, 1))) sizes.emplace(std::move(name), 1);
      zeros.tensors.emplace_back(value.dtype(), sized(value.shape(), sizes));
    }
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
