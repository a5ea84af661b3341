// Nodes are visited from the loss backwards, by descending id. A node's id is above the ids of the
// nodes that it reads. So all readers of a value are visited before the node that makes the value,
// and its gradient is complete by then.
#include "graph/autodiff.h"

#include <fmt/format.h>

#include <map>

#include "base/check.h"
#include "graph/sources.h"
#include "paceline/error.h"
#include "paceline/minimize.h"

namespace paceline {
namespace {

// The gradients that readers of one value have sent back to it so far.
struct Collected {
  Value dense;
  std::vector<Value> ids, rows;
};

class Differentiation {
 public:
  Differentiation(Value loss, std::span<const Value> wrt);
  void run();
  Gradient take(Value value, bool may_be_sparse);

 private:
  using Key = std::pair<int, int>;
  static Key key_of(Value value) { return {value.node().id(), value.output()}; }

  void mark_active(std::span<const Value> wrt);
  void visit(const Node& node);
  void collect(const Node& reader, Value value, const Gradient& gradient);
  Value scatter(Value value, Value ids, Value rows);
  Value joined(const std::vector<Value>& parts);

  Graph& graph_;
  Value loss_;
  // By node id: whether the node makes a value of `wrt`, or depends on one through floats.
  std::vector<bool> active_;
  std::map<Key, Collected> collected_;
};

[[noreturn]] void refuse_gradient(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

Differentiation::Differentiation(Value loss, std::span<const Value> wrt)
    : graph_(loss.graph()), loss_(loss) {
  mark_active(wrt);
}

void Differentiation::mark_active(std::span<const Value> wrt) {
  active_.assign(graph_.nodes().size(), false);
  for (const Value& value : wrt) active_[std::size_t(value.node().id())] = true;
  for (const auto& node : graph_.nodes()) {
    for (const Value& input : node->inputs()) {
      const bool reached = active_[std::size_t(input.node().id())] && is_floating(input.dtype());
      if (reached) active_[std::size_t(node->id())] = true;
    }
  }
}

void Differentiation::run() {
  const Graph::Scope scope(graph_, "gradients");
  const Tensor one = loss_.dtype() == DType::kFloat64 ? Tensor::scalar(1.0) : Tensor::scalar(1.0f);
  collected_[key_of(loss_)].dense = graph_.constant(one, "one");
  for (int id = loss_.node().id(); id >= 0; --id) {
    const Node& node = *graph_.nodes()[std::size_t(id)];
    if (active_[std::size_t(id)] && !node.inputs().empty()) visit(node);
  }
}

void Differentiation::visit(const Node& node) {
  const Graph::Scope scope(graph_, node.name());
  std::vector<Value> output_gradients;
  bool reached = false;
  for (int k = 0; k < int(node.outputs().size()); ++k) {
    output_gradients.push_back(take(node.output(k), false).dense);
    reached = reached || bool(output_gradients.back());
  }
  if (!reached) return;
  if (!node.op().gradient) {
    refuse_gradient(fmt::format("[{}] '{}' has no gradient: {}", node.op().name, node.name(),
                                node.op().no_gradient));
  }
  const std::vector<Gradient> gradients = node.op().gradient(node, output_gradients);
  PACELINE_CHECK(gradients.size() == node.inputs().size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    collect(node, node.inputs()[i], gradients[i]);
  }
}

void Differentiation::collect(const Node& reader, Value value, const Gradient& gradient) {
  const bool wanted = active_[std::size_t(value.node().id())] && is_floating(value.dtype());
  if (!gradient || !wanted) return;
  Collected& sum = collected_[key_of(value)];
  if (gradient.sparse()) {
    sum.ids.push_back(gradient.ids);
    sum.rows.push_back(gradient.rows);
  }
  if (!gradient.dense) return;
  if (gradient.dense.type() != value.type()) {
    refuse_gradient(fmt::format("[{}] the gradient of '{}' by '{}' is {}, not {}", reader.op().name,
                                reader.name(), value.name(), gradient.dense.type().str(),
                                value.type().str()));
  }
  sum.dense = sum.dense ? graph_.apply("add", {sum.dense, gradient.dense}) : gradient.dense;
}

Gradient Differentiation::take(Value value, bool may_be_sparse) {
  const auto found = collected_.find(key_of(value));
  if (found == collected_.end()) return {};
  Collected& sum = found->second;
  if (sum.rows.empty()) return sum.dense;
  const Value ids = joined(sum.ids), rows = joined(sum.rows);
  if (may_be_sparse && !sum.dense) return {ids, rows};
  const Value scattered = scatter(value, ids, rows);
  // Keeps the sum: a value that the caller asks for and whose node passes its gradient on is taken
  // twice.
  sum = {sum.dense ? graph_.apply("add", {sum.dense, scattered}) : scattered, {}, {}};
  return sum.dense;
}

Value Differentiation::scatter(Value value, Value ids, Value rows) {
  const std::int64_t count = value.shape()[0];
  return graph_.apply("scatter_rows", {ids, rows}, {{"rows", count}});
}

Value Differentiation::joined(const std::vector<Value>& parts) {
  if (parts.size() == 1) return parts[0];
  return graph_.add("concat", parts, {{"axis", std::int64_t{0}}}).output(0);
}

void check_loss(Value loss) {
  if (!loss) refuse_gradient("[gradients] the loss is no value");
  const bool floating = loss.dtype() == DType::kFloat32 || loss.dtype() == DType::kFloat64;
  if (!floating || loss.shape() != Shape{}) {
    refuse_gradient(fmt::format("[gradients] the loss '{}' is {}; a float scalar is needed",
                                loss.name(), loss.type().str()));
  }
}

void check_value(Value loss, Value value) {
  if (!value) refuse_gradient("[gradients] a value to differentiate by is no value");
  if (&value.graph() != &loss.graph()) {
    refuse_gradient(fmt::format("[gradients] '{}' is not of the graph of the loss '{}'",
                                value.name(), loss.name()));
  }
  if (!is_floating(value.dtype())) {
    refuse_gradient(fmt::format("[gradients] '{}' is {}, which has no derivative", value.name(),
                                value.type().str()));
  }
}

Differentiation differentiated(Value loss, std::span<const Value> by) {
  check_loss(loss);
  for (const Value& value : by) check_value(loss, value);
  Differentiation differentiation(loss, by);
  differentiation.run();
  return differentiation;
}

}  // namespace

std::vector<Gradient> differentiate(Value loss, std::span<const Value> by) {
  Differentiation differentiation = differentiated(loss, by);
  std::vector<Gradient> result;
  for (const Value& value : by) {
    result.push_back(differentiation.take(value, is_variable(value.node())));
  }
  return result;
}

std::vector<Value> gradients(Value loss, const std::vector<Value>& values) {
  Differentiation differentiation = differentiated(loss, values);
  std::vector<Value> result;
  for (const Value& value : values) {
    result.push_back(differentiation.take(value, false).dense);
    if (result.back()) continue;
    refuse_gradient(
        fmt::format("[gradients] the loss '{}' does not depend on '{}', or only "
                    "through ops whose gradient is zero",
                    loss.name(), value.name()));
  }
  return result;
}

}  // namespace paceline
