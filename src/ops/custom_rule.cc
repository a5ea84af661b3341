// Makes the program of a user's own rule from the values that its update returns.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "graph/rule_program.h"
#include "paceline/graph.h"
#include "paceline/op.h"
#include "paceline/rule.h"

namespace paceline {
namespace {

using Kind = FusedOperand::Kind;

// Writes the steps that compute the new value and slots of a rule.
class RuleProgramWriter {
 public:
  RuleProgramWriter(RuleProgram& program, const RuleTerms& terms)
      : program_(program), element_(terms.value.shape()) {
    scalars_[key(terms.learning_rate)] = {Kind::kInput, RuleProgram::kLearningRate};
    scalars_[key(terms.count)] = {Kind::kInput, RuleProgram::kCount};
    elements_[key(terms.value)] = {Kind::kInput, RuleProgram::kValue};
    elements_[key(terms.gradient)] = {Kind::kInput, RuleProgram::kGradient};
    for (std::size_t i = 0; i < terms.slots.size(); ++i) {
      elements_[key(terms.slots[i])] = {Kind::kInput, RuleProgram::kFirstSlot + int(i)};
    }
  }

  void add(const Graph& graph, const RuleUpdate& update) {
    mark_needed(update);
    for (const auto& node : graph.nodes()) {
      if (needed_.contains(node->id())) add_node(*node);
    }
    add_result(update.value);
    for (const Value& slot : update.slots) add_result(slot);
  }

 private:
  using Key = std::pair<int, int>;
  static Key key(const Value& value) { return {value.node().id(), value.output()}; }

  bool is_number(const Value& value) const { return value.shape().elements() == 1; }
  /// True for a value that has elements, as the variable has. In a rule for whole variables,
  /// matrices between the terms and the results may have other sizes than the variable.
  bool is_element(const Value& value) const {
    return program_.whole ? value.shape().rank() == 2 : value.shape() == element_;
  }
  /// True for a number that is computed once, from numbers alone.
  bool is_scalar(const Node& node) const {
    return is_number(node.output(0)) && std::ranges::all_of(node.inputs(), [&](const Value& input) {
             return scalars_.contains(key(input));
           });
  }
  bool is_known(const Value& value) const {
    return scalars_.contains(key(value)) || elements_.contains(key(value));
  }

  void mark_needed(const RuleUpdate& update) {
    std::vector<Value> open = {update.value};
    open.insert(open.end(), update.slots.begin(), update.slots.end());
    while (!open.empty()) {
      const Value value = open.back();
      open.pop_back();
      if (is_known(value) || !needed_.insert(value.node().id()).second) continue;
      open.insert(open.end(), value.node().inputs().begin(), value.node().inputs().end());
    }
  }

  void add_node(const Node& node) {
    const Value value = node.output(0);
    if (node.op().name == "constant") return add_constant(value);
    if (program_.whole && add_matrix_step(node)) return;
    const FusableOp* op = find_fusable_op(node.op().name);
    const bool one = program_.whole ? is_scalar(node) : is_number(value);
    if (op == nullptr || node.outputs().size() != 1 ||
        (!is_number(value) && !(is_element(value) && fits(node)))) {
      program_.refuse(fmt::format("op {} is not element-wise over the value, its slots and numbers",
                                  node.op().name));
    }
    FusedStep step{node.op().name, {}, 0};
    for (const Value& input : node.inputs()) {
      step.operands.push_back(one ? scalar_operand(input) : element_operand(input));
    }
    if (!op->number.empty()) step.number = node.attributes().get<double>(std::string(op->number));
    std::vector<FusedStep>& steps = one ? program_.scalar_steps : program_.element_steps;
    (one ? scalars_ : elements_)[key(value)] = {Kind::kStep, int(steps.size())};
    steps.push_back(std::move(step));
  }

  bool fits(const Node& node) const {
    return std::ranges::all_of(node.inputs(), [&](const Value& input) {
      return is_number(input) || input.shape() == node.outputs()[0].shape;
    });
  }

  /// Adds the node as a step that is not element-wise, a matmul or a sum of all elements. Returns
  /// false if the node is neither.
  bool add_matrix_step(const Node& node) {
    FusedStep step{node.op().name, {}, 0};
    const Attributes& attributes = node.attributes();
    if (step.op == RuleProgram::kMatmul) {
      step.number = (attributes.get<bool>("transpose_a") ? 1 : 0) +
                    (attributes.get<bool>("transpose_b") ? 2 : 0);
    } else if (step.op != RuleProgram::kSum || !is_number(node.output(0)) ||
               is_number(node.input(0))) {
      return false;
    }
    for (const Value& input : node.inputs()) step.operands.push_back(element_operand(input));
    elements_[key(node.output(0))] = {Kind::kStep, int(program_.element_steps.size())};
    program_.element_steps.push_back(std::move(step));
    return true;
  }

  void add_constant(const Value& value) {
    const Tensor& tensor = value.node().attributes().get<Tensor>("value");
    if (tensor.shape().elements() != 1 || tensor.dtype() != DType::kFloat32) {
      program_.refuse("a constant has to be one number of float32");
    }
    scalars_[key(value)] = {Kind::kStep, int(program_.scalar_steps.size())};
    program_.scalar_steps.push_back(
        {std::string(RuleProgram::kNumber), {}, double(tensor.item<float>())});
  }

  FusedOperand scalar_operand(const Value& input) const { return scalars_.at(key(input)); }

  FusedOperand element_operand(const Value& input) const {
    if (const auto found = elements_.find(key(input)); found != elements_.end()) {
      return found->second;
    }
    const FusedOperand scalar = scalars_.at(key(input));
    const int index = scalar.index + (scalar.kind == Kind::kStep ? RuleProgram::kScalarInputs : 0);
    return {Kind::kInput, program_.scalar_input(index)};
  }

  // A result that is neither a step nor the input that it replaces needs a step that copies it.
  void add_result(const Value& value) {
    FusedOperand result = element_operand(value);
    if (result.kind == Kind::kInput && result != RuleProgram::replaced(program_.results.size())) {
      program_.element_steps.push_back({"scale", {result}, 1});
      result = {Kind::kStep, int(program_.element_steps.size()) - 1};
    }
    program_.results.push_back(result);
  }

  RuleProgram& program_;
  const Shape element_;
  std::set<int> needed_;
  std::map<Key, FusedOperand> scalars_, elements_;
};

RuleTerms terms_in(Graph& graph, const RuleProgram& program) {
  const std::span<const SlotSpec> slots = program.slots;
  // Any shape with more than one element serves; the two dimensions of a matrix must differ.
  const Shape elements = program.whole ? Shape{2, 3} : Shape{2};
  RuleTerms terms{graph.input("value", elements),
                  graph.input("gradient", elements),
                  {},
                  graph.input("learning_rate", {}),
                  graph.input("count", {})};
  terms.slots.reserve(slots.size());
  for (const SlotSpec& slot : slots) {
    terms.slots.push_back(graph.input("slot " + slot.name, elements));
  }
  return terms;
}

void check_update(const RuleProgram& program, const Graph& graph, const RuleUpdate& update) {
  if (update.slots.size() != program.slots.size()) {
    program.refuse(
        fmt::format("it renews {} of {} slots", update.slots.size(), program.slots.size()));
  }
  std::vector<Value> results = {update.value};
  results.insert(results.end(), update.slots.begin(), update.slots.end());
  for (const Value& result : results) {
    if (result && &result.graph() == &graph) continue;
    program.refuse("it returns a value that is not made of its terms");
  }
}

RuleProgram program_of(const CustomRule& rule) {
  RuleProgram program;
  program.name = rule.name;
  program.slots = rule.slots;
  program.whole = rule.whole;
  if (!rule.update) program.refuse("it has no update");
  Graph graph;
  const RuleTerms terms = terms_in(graph, program);
  const RuleUpdate update = rule.update(terms);
  check_update(program, graph, update);
  RuleProgramWriter(program, terms).add(graph, update);
  program.complete();
  return program;
}

}  // namespace

Rule::Rule(const CustomRule& rule)
    : kind_(RuleKind::kCustom),
      learning_rate_(rule.learning_rate),
      program_(std::make_shared<const RuleProgram>(program_of(rule))) {
  check();
}

}  // namespace paceline
