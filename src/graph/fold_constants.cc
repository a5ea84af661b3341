#include <fmt/format.h>
#include <algorithm>

#include "graph/passes.h"
#include "graph/sources.h"
#include "paceline/op.h"

namespace paceline {
namespace {

// Larger results are folded only if they are no larger than their operands: a small constant is
// cheaper to spread over a large shape in each step than to keep in that shape.
constexpr std::size_t kMaxGrownBytes = std::size_t{1} << 20;

bool is_folded(const Value& value) { return is_constant(value.node()); }

bool foldable(const Node& node, std::span<const Value> inputs) {
  if (inputs.empty() || node.op().stateful || !std::ranges::all_of(inputs, is_folded)) {
    return false;
  }
  std::size_t read = 0, written = 0;
  for (const Value& input : inputs) read += input.type().bytes();
  for (const ValueType& output : node.outputs()) written += output.bytes();
  return written <= std::max(read, kMaxGrownBytes);
}

void fold(GraphCopy& copy, const Node& node, std::span<const Value> inputs,
          ConstantEvaluator& evaluator) {
  std::vector<Tensor> tensors;
  for (const Value& input : inputs) {
    tensors.push_back(input.node().attributes().get<Tensor>("value"));
  }
  const std::vector<Tensor> results = evaluator.evaluate(node, tensors);
  for (int k = 0; k < int(results.size()); ++k) {
    const std::string name = k == 0 ? node.name() : fmt::format("{}_output{}", node.name(), k);
    copy.replace(node.output(k), copy.graph().constant(results[std::size_t(k)], name));
  }
}

}  // namespace

RewrittenGraph with_folded_constants(const RewriteSource& source, ConstantEvaluator& evaluator) {
  return GraphCopy::run(source, [&evaluator](GraphCopy& copy, const Node& node) {
    const std::vector<Value> inputs = copy.copies_of(node.inputs());
    if (foldable(node, inputs)) {
      fold(copy, node, inputs, evaluator);
    } else {
      copy.copy(node);
    }
  });
}

}  // namespace paceline
