// The maximum of a window of relu(x) is the relu of the maximum of x, and a window has a gradient
// only where that maximum is above zero. So a max pool takes up the relu before it. Neither relu(x)
// nor the gradient of x before the mask is ever written; each is four times as large as the pool.
#include <set>
#include <vector>

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {
namespace {

// A byte holds a place in the window, and needs one more value for "no element is above zero".
constexpr std::int64_t kMostElements = 255;

std::int64_t elements_of_window(const Node& pool) {
  const auto& size = pool.attributes().get<std::vector<std::int64_t>>("size");
  return size.at(0) * size.at(1);
}

class FusedPools {
 public:
  explicit FusedPools(const RewriteSource& source) : readers_(source) {
    const std::vector<bool> live = source.live();
    for (const auto& node : source.graph.nodes()) {
      if (live[std::size_t(node->id())] && node->op().name == "max_pool2d") add(*node);
    }
  }

  void visit(GraphCopy& copy, const Node& node) const {
    if (relus_.contains(&node)) return;
    if (pools_.contains(&node)) {
      const Value x = node.input(0).node().input(0);
      const Node& both = copy.graph().add("relu_max_pool2d", copy.copies_of({&x, 1}),
                                          node.attributes(), node.name());
      for (int k = 0; k < 2; ++k) copy.replace(node.output(k), both.output(k));
    } else if (masks_.contains(&node)) {
      copy.replace(node.output(0), copy.copy_of(node.input(0)));
    } else {
      copy.copy(node);
    }
  }

 private:
  void add(const Node& pool) {
    const Node& relu = pool.input(0).node();
    if (relu.op().name != "relu" || elements_of_window(pool) > kMostElements) return;
    const std::set<const Node*> readers = readers_.of(relu.output(0));
    for (const Node* reader : readers) {
      if (reader != &pool && (reader == nullptr || !masks_gradient_of(pool, *reader))) return;
    }
    relus_.insert(&relu);
    pools_.insert(&pool);
    for (const Node* reader : readers) {
      if (reader != &pool) masks_.insert(reader);
    }
  }

  bool masks_gradient_of(const Node& pool, const Node& mask) const {
    if (mask.op().name != "relu_grad" || mask.input(0) == pool.input(0)) return false;
    const Node& gradient = mask.input(0).node();
    return gradient.op().name == "max_pool2d_grad" && gradient.input(1) == pool.output(1) &&
           readers_.only_reader(gradient.output(0)) == &mask;
  }

  const Readers readers_;
  std::set<const Node*> relus_, pools_;
  std::set<const Node*> masks_;  // relu_grad after the gradient of a pool
};

}  // namespace

RewrittenGraph with_fused_pool_activation(const RewriteSource& source) {
  if (!source.graph.ops().contains("relu_max_pool2d")) return without_dead_nodes(source);
  const FusedPools fused(source);
  return GraphCopy::run(source,
                        [&fused](GraphCopy& copy, const Node& node) { fused.visit(copy, node); });
}

}  // namespace paceline
