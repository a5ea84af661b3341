#include "tests/graph_in_double.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "paceline/op.h"

namespace paceline::testing {
namespace {

Attributes attributes_in_double(const Attributes& attributes) {
  Attributes result;
  for (auto [name, item] : attributes.items()) {
    const DType* dtype = std::get_if<DType>(&item);
    if (dtype != nullptr && *dtype == DType::kFloat32) item = DType::kFloat64;
    if (const Tensor* tensor = std::get_if<Tensor>(&item)) item = in_double(*tensor);
    result.set(name, item);
  }
  return result;
}

}  // namespace

GraphInDouble::GraphInDouble(const Graph& graph) : graph_(graph.ops()) {
  for (const auto& node : graph.nodes()) {
    std::vector<Value> inputs;
    for (const Value& input : node->inputs()) inputs.push_back((*this)(input));
    const Node& added =
        graph_.add(node->op().name, inputs, attributes_in_double(node->attributes()), node->name());
    for (int k = 0; k < int(node->outputs().size()); ++k) {
      values_[{node->id(), k}] = added.output(k);
    }
  }
}

Tensor in_double(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32) return tensor;
  Tensor result(DType::kFloat64, tensor.shape());
  std::ranges::copy(tensor.data<float>(), result.data<double>().begin());
  return result;
}

double relative_distance(const Tensor& a, const Tensor& b) {
  const Tensor wide = in_double(a);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < b.data<double>().size(); ++i) {
    const double x = wide.data<double>()[i], y = b.data<double>()[i];
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

}  // namespace paceline::testing
