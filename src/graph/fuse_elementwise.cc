// A tree of element-wise nodes becomes one node, which passes over memory once. The last node of a
// tree is its head. A node joins the tree of its only reader if its result has the shape and dtype
// of the head's.
#include <algorithm>

#include "graph/fused_program.h"
#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

// The most nodes of a tree: a kernel keeps a block of each step's result in the nearest cache.
constexpr std::size_t kMaxSteps = 32;

bool fits(const Value& operand, const ValueType& result) {
  return operand.dtype() == result.dtype &&
         (operand.shape() == result.shape || operand.shape().elements() == 1);
}

bool fusable(const Node& node) {
  const FusableOp* op = find_fusable_op(node.op().name);
  if (op == nullptr || std::size_t(op->operands) != node.inputs().size()) return false;
  const ValueType& result = node.outputs()[0];
  const bool floating = result.dtype == DType::kFloat32 || result.dtype == DType::kFloat64;
  return floating && std::ranges::all_of(node.inputs(), [&](const Value& operand) {
           return fits(operand, result);
         });
}

// Nodes by ascending id; the head is the last.
using Tree = std::vector<const Node*>;

Tree grow(const Node& head, const Readers& readers) {
  Tree tree = {&head};
  for (std::size_t next = 0; next < tree.size(); ++next) {
    for (const Value& operand : tree[next]->inputs()) {
      const Node& node = operand.node();
      const bool joins = fusable(node) && readers.only_reader(operand) == tree[next] &&
                         operand.type() == head.outputs()[0] && tree.size() < kMaxSteps &&
                         std::ranges::find(tree, &node) == tree.end();
      if (joins) tree.push_back(&node);
    }
  }
  std::ranges::sort(tree, {}, &Node::id);
  return tree;
}

struct Trees {
  std::map<int, Tree> by_head;
  std::set<int> inner;
};

Trees find_trees(const RewriteSource& source) {
  const Readers readers(source);
  const std::vector<bool> live = source.live();
  Trees trees;
  for (std::size_t id = live.size(); id-- > 0;) {
    const Node& node = *source.graph.nodes()[id];
    if (!live[id] || trees.inner.contains(node.id()) || !fusable(node)) continue;
    Tree tree = grow(node, readers);
    if (tree.size() == 1) continue;
    for (const Node* member : tree) {
      if (member != &node) trees.inner.insert(member->id());
    }
    trees.by_head.emplace(node.id(), std::move(tree));
  }
  return trees;
}

class ProgramWriter {
 public:
  explicit ProgramWriter(const Tree& tree) {
    for (const Node* node : tree) add_step(*node);
  }
  std::string program() const { return format_fused_program(steps_); }
  const std::vector<Value>& inputs() const { return inputs_; }

 private:
  void add_step(const Node& node) {
    const FusableOp& op = *find_fusable_op(node.op().name);
    FusedStep step{node.op().name, {}, 0};
    for (const Value& operand : node.inputs()) step.operands.push_back(operand_of(operand));
    if (!op.number.empty()) step.number = node.attributes().get<double>(std::string(op.number));
    step_of_[node.id()] = int(steps_.size());
    steps_.push_back(std::move(step));
  }

  FusedOperand operand_of(const Value& operand) {
    if (const auto step = step_of_.find(operand.node().id()); step != step_of_.end()) {
      return {FusedOperand::Kind::kStep, step->second};
    }
    auto input = std::ranges::find(inputs_, operand);
    if (input == inputs_.end()) input = inputs_.insert(input, operand);
    return {FusedOperand::Kind::kInput, int(input - inputs_.begin())};
  }

  std::vector<FusedStep> steps_;
  std::vector<Value> inputs_;
  std::map<int, int> step_of_;
};

void add_fused(GraphCopy& copy, const Node& head, const Tree& tree) {
  const ProgramWriter writer(tree);
  copy.copy_as(head, "fused_elementwise", copy.copies_of(writer.inputs()),
               {{"program", writer.program()}});
}

}  // namespace

RewrittenGraph with_fused_elementwise(const RewriteSource& source) {
  if (!source.graph.ops().contains("fused_elementwise")) return without_dead_nodes(source);
  const Trees trees = find_trees(source);
  return GraphCopy::run(source, [&trees](GraphCopy& copy, const Node& node) {
    if (trees.inner.contains(node.id())) return;
    const auto tree = trees.by_head.find(node.id());
    if (tree == trees.by_head.end()) return copy.copy(node);
    add_fused(copy, node, tree->second);
  });
}

}  // namespace paceline
