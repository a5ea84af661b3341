#include "paceline/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <new>

#include "base/nearest.h"
#include "base/open_dimension.h"
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

std::int64_t Graph::open(const std::string& name, std::int64_t usual) {
  const std::int64_t dimension = open_dimension(name);
  if (usual < 0) invalid(fmt::format("[graph] the usual size of '{}' is {}", name, usual));
  if (usual == 0) return dimension;
  const auto [known, is_new] = usual_sizes_.emplace(name, usual);
  if (is_new || known->second == usual) return dimension;
  invalid(
      fmt::format("[graph] the usual size of '{}' is {}, and was {}", name, usual, known->second));
}

Value Graph::input(const std::string& name, const Shape& shape, DType dtype) {
  return declare("input", name, shape, dtype, {});
}

Value Graph::variable(const std::string& name, const Shape& shape, Initializer initializer,
                      DType dtype) {
  index_names();
  const auto known = nodes_by_name_.find(scoped(name));
  if (known == nodes_by_name_.end() || !is_variable(*known->second)) {
    if (std::ranges::any_of(shape.dims(), is_open)) {
      invalid(fmt::format("[variable] '{}' cannot have the open dimensions of {}", scoped(name),
                          shape.str()));
    }
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

// Names in a graph: unique ones for nodes, scopes, and the ones that a user gives.

namespace {

// "name:k" is output k of a node.
struct OutputName {
  std::string_view node;
  int output = 0;
};

OutputName split_output(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return {name};
  const std::string_view digits = name.substr(colon + 1);
  int output = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), output);
  if (error != std::errc() || end != digits.data() + digits.size()) return {name};
  return {name.substr(0, colon), output};
}

}  // namespace

void Graph::index_names() const {
  for (; indexed_ < nodes_.size(); ++indexed_) {
    Node& node = *nodes_[indexed_];
    if (nodes_by_name_.try_emplace(*node.name_, &node).second) continue;
    node.name_ = std::make_shared<const std::string>(numbered_name(*node.name_));
    nodes_by_name_.emplace(*node.name_, &node);
  }
}

std::string Graph::numbered_name(const std::string& taken) const {
  // Keeps the count, so that a thousand nodes of one op do not each search from 1.
  int& count = name_counts_[taken];
  std::string numbered;
  do {
    numbered = fmt::format("{}_{}", taken, ++count);
  } while (nodes_by_name_.contains(numbered));
  return numbered;
}

Value Graph::named(const std::string& name, Value value) {
  const std::string full = scoped(name);
  if (!value || &value.graph() != this) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[graph] '{}' is to name what is no value of this graph", full));
  }
  index_names();
  const auto node = nodes_by_name_.find(full);
  const bool hides_a_source = node != nodes_by_name_.end() && node->second->inputs().empty() &&
                              node->second->output(0) != value;
  if (name.empty() || names_.contains(full) || hides_a_source) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[graph] the name '{}' is {}", full, name.empty() ? "empty" : "taken"));
  }
  names_.emplace(full, value);
  return value;
}

Value Graph::find(std::string_view name) const {
  if (const auto named = names_.find(name); named != names_.end()) return named->second;
  index_names();
  const auto [node_name, output] = split_output(name);
  const auto node = nodes_by_name_.find(node_name);
  if (node != nodes_by_name_.end() && output >= 0 &&
      std::size_t(output) < node->second->outputs().size()) {
    return node->second->output(output);
  }
  std::vector<std::string_view> known;
  for (const auto& [other, value] : names_) known.emplace_back(other);
  for (const auto& node : nodes_) known.emplace_back(node->name());
  throw Error(ErrorCode::kNotFound,
              fmt::format("[graph] there is no value '{}'{}", name, did_you_mean(name, known)));
}

Graph::Scope::Scope(Graph& graph, std::string_view name)
    : graph_(graph), length_(graph.scope_.size()) {
  graph_.scope_ += name;
  graph_.scope_ += '/';
}

Graph::Scope::~Scope() { graph_.scope_.resize(length_); }

// A graph as text and as Graphviz DOT, from the same facts.

namespace {

std::string with_unit(double amount, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  for (; amount >= 1000 && prefix + 1 < kPrefixes.size(); ++prefix) amount /= 1000;
  return prefix == 0 ? fmt::format("{:.0f} {}", amount, unit)
                     : fmt::format("{:.1f} {}{}", amount, kPrefixes[prefix], unit);
}

std::string cost_str(const Cost& cost) {
  return fmt::format("{}, {}", with_unit(cost.flops, "FLOP"), with_unit(cost.bytes, "B"));
}

std::string outputs_str(const Node& node) {
  std::vector<std::string> types;
  for (const ValueType& type : node.outputs()) types.push_back(type.str());
  return fmt::format("{}", fmt::join(types, ", "));
}

std::string inputs_str(const Node& node) {
  std::vector<std::string> names;
  for (const Value& input : node.inputs()) names.push_back(input.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

Cost total_of(const Graph& graph) {
  Cost total;
  for (const auto& node : graph.nodes()) {
    const Cost cost = node->op().cost(*node);
    total.flops += cost.flops;
    total.bytes += cost.bytes;
  }
  return total;
}

std::string totals_str(const Graph& graph) {
  return fmt::format("{} nodes: {}", graph.nodes().size(), cost_str(total_of(graph)));
}

// Escapes `text` for a label of DOT: a quoted string in which \n breaks the line.
std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string dot_node(const Node& node) {
  const std::string_view form = node.inputs().empty() ? "ellipse" : "box";
  return fmt::format("  n{} [shape={}, label=\"{}\\n{}: {}\\n{}\"];\n", node.id(), form,
                     escaped(node.name()), escaped(node.op().name), outputs_str(node),
                     cost_str(node.op().cost(node)));
}

}  // namespace

std::string Graph::text() const {
  std::size_t width = 0;
  for (const auto& node : nodes_) width = std::max(width, node->name().size());
  std::string text;
  for (const auto& node : nodes_) {
    text += fmt::format("{:{}} = {}({}): {}; {}\n", node->name(), width, node->op().name,
                        inputs_str(*node), outputs_str(*node), cost_str(node->op().cost(*node)));
  }
  for (const Assignment& assignment : assignments_) {
    text += fmt::format("{} <- {}\n", assignment.local.name(), assignment.value.name());
  }
  for (const auto& [name, value] : names_) {
    text += fmt::format("'{}' is {}\n", name, value.name());
  }
  return text + totals_str(*this) + "\n";
}

std::string Graph::dot() const {
  std::string text = "digraph paceline {\n  node [fontname=\"sans-serif\"];\n";
  for (const auto& node : nodes_) text += dot_node(*node);
  for (const auto& node : nodes_) {
    for (const Value& input : node->inputs()) {
      text += fmt::format("  n{} -> n{} [label=\"{}\"];\n", input.node().id(), node->id(),
                          input.shape().str());
    }
  }
  for (const Assignment& assignment : assignments_) {
    text += fmt::format("  n{} -> n{} [style=dashed, label=\"assign\"];\n",
                        assignment.value.node().id(), assignment.local.node().id());
  }
  return text + fmt::format("  label=\"{}\";\n}}\n", totals_str(*this));
}

}  // namespace paceline
