#include "paceline/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "graph/initializer_of.h"
#include "graph/sources.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/rule.h"

namespace paceline {
namespace {

[[noreturn]] void invalid(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

std::vector<ValueType> checked_types(const Graph& graph, std::string_view op,
                                     std::span<const Value> inputs) {
  std::vector<ValueType> types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) invalid(fmt::format("[{}] input {} is no value", op, i));
    if (&inputs[i].graph() != &graph) {
      invalid(fmt::format("[{}] input {}, '{}', is of another graph", op, i, inputs[i].name()));
    }
    types.push_back(inputs[i].type());
  }
  return types;
}

void check_initializer(const std::string& name, const Initializer& initializer,
                       const ValueType& type) {
  if (initializer.kind == Initializer::Kind::kValues) {
    const ValueType given{initializer.given.dtype(), initializer.given.shape()};
    if (initializer.given.defined() && given == type && type.dtype == DType::kFloat32) return;
    invalid(fmt::format("[variable] '{}', {}, cannot begin with values of {}", name, type.str(),
                        initializer.given.defined() ? given.str() : "nothing"));
  }
  const bool uniform = initializer.kind == Initializer::Kind::kUniform;
  const float width = uniform ? initializer.b - initializer.a : initializer.b;
  if (!std::isfinite(initializer.a) || !std::isfinite(width) || width < 0) {
    invalid(fmt::format("[variable] '{}' cannot begin with {} {} and {} {}", name,
                        uniform ? "low" : "mean", initializer.a, uniform ? "high" : "deviation",
                        initializer.b));
  }
}

}  // namespace

Graph::Graph(const OpRegistry& ops) : ops_(&ops) {}

Graph::~Graph() = default;

Node& Graph::append(const Op& op, std::span<const Value> inputs, Attributes attributes,
                    std::string name) {
  const std::vector<ValueType> types = checked_types(*this, op.name, inputs);
  const std::vector<ValueType> outputs = op.infer(OpInputs{op.name, types, attributes});
  Node& node = append_typed(op, inputs, outputs, std::move(attributes),
                            std::make_shared<const std::string>(std::move(name)));
  index_names();
  return node;
}

Node& Graph::append_typed(const Op& op, std::span<const Value> inputs,
                          std::span<const ValueType> outputs, Attributes attributes,
                          std::shared_ptr<const std::string> name) {
  void* place = memory_.allocate(sizeof(Node), alignof(Node));
  std::unique_ptr<Node> node(new (place) Node(&memory_));
  node->op_ = &op;
  node->name_ = std::move(name);
  node->id_ = int(nodes_.size());
  node->graph_ = this;
  node->inputs_.assign(inputs.begin(), inputs.end());
  node->outputs_.assign(outputs.begin(), outputs.end());
  node->attributes_ = std::move(attributes);
  nodes_.push_back(std::move(node));
  return *nodes_.back();
}

Node& Graph::add(std::string_view op, std::span<const Value> inputs, Attributes attributes,
                 std::string_view name) {
  const Op& found = ops_->find(op);
  return append(found, inputs, std::move(attributes), scoped(name.empty() ? op : name));
}

Value Graph::apply(std::string_view op, std::initializer_list<Value> inputs, Attributes attributes,
                   std::string_view name) {
  return add(op, {inputs.begin(), inputs.size()}, std::move(attributes), name).output(0);
}

Value Graph::declare(std::string_view op, const std::string& name, const Shape& shape, DType dtype,
                     Attributes attributes) {
  const std::string full = scoped(name);
  if (name.empty()) invalid(fmt::format("[{}] the name is empty", op));
  index_names();
  if (nodes_by_name_.contains(full) || names_.contains(full)) {
    invalid(fmt::format("[{}] the name '{}' is taken", op, full));
  }
  attributes.set("shape", std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end()));
  attributes.set("dtype", dtype);
  return append(ops_->find(op), {}, std::move(attributes), full).output(0);
}

Value Graph::input(const std::string& name, const Shape& shape, DType dtype) {
  return declare("input", name, shape, dtype, {});
}

Value Graph::variable(const std::string& name, const Shape& shape, Initializer initializer,
                      DType dtype) {
  index_names();
  const auto known = nodes_by_name_.find(scoped(name));
  if (known == nodes_by_name_.end() || !is_variable(*known->second)) {
    check_initializer(scoped(name), initializer, {dtype, shape});
    Attributes attributes;
    set_initializer(attributes, initializer);
    return declare("variable", name, shape, dtype, std::move(attributes));
  }
  const Value value = known->second->output(0);
  const ValueType asked{dtype, shape};
  if (value.type() != asked) {
    invalid(fmt::format("[variable] '{}' is {}, asked for as {}", value.name(), value.type().str(),
                        asked.str()));
  }
  return value;
}

Value Graph::local(const std::string& name, const Shape& shape, DType dtype) {
  return declare("local", name, shape, dtype, {});
}

Value Graph::constant(const Tensor& value, const std::string& name) {
  if (!value.defined()) invalid(fmt::format("[constant] '{}' has no value", scoped(name)));
  return apply("constant", {}, {{"value", value}}, name);
}

void Graph::assign(Value local, Value value) {
  const Value both[] = {local, value};
  checked_types(*this, "assign", both);
  if (local.node().op().name != "local") {
    invalid(fmt::format("[assign] '{}' is no local variable", local.name()));
  }
  if (local.type() != value.type()) {
    invalid(fmt::format("[assign] '{}' is {}, '{}' is {}", local.name(), local.type().str(),
                        value.name(), value.type().str()));
  }
  const bool first = assigned_.insert(local.node().id()).second;
  if (!first) invalid(fmt::format("[assign] '{}' is assigned twice", local.name()));
  assignments_.push_back({local, value});
}

void Graph::contribute(Value variable, Value value, const Rule& rule) {
  const Value both[] = {variable, value};
  checked_types(*this, "contribute", both);
  if (!is_variable(variable.node())) {
    invalid(fmt::format("[contribute] '{}' is no variable", variable.name()));
  }
  if (variable.type() != value.type()) {
    invalid(fmt::format("[contribute] '{}' is {}, '{}' is {}", variable.name(),
                        variable.type().str(), value.name(), value.type().str()));
  }
  const auto known = std::ranges::find(contributions_, variable, &Contribution::variable);
  if (known != contributions_.end()) {
    invalid(fmt::format("[contribute] '{}' is given two values", variable.name()));
  }
  contributions_.push_back({variable, value, std::make_shared<const Rule>(rule)});
}

}  // namespace paceline
