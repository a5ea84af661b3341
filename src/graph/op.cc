#include "paceline/op.h"

#include <fmt/format.h>

#include "base/nearest.h"
#include "paceline/error.h"

namespace paceline {

namespace {

Cost cost_of_elements(const Node& node) {
  Cost cost;
  for (const ValueType& output : node.outputs()) {
    cost.flops += double(output.shape.elements());
    cost.bytes += double(output.bytes());
  }
  for (const Value& input : node.inputs()) cost.bytes += double(input.type().bytes());
  return cost;
}

}  // namespace

void OpInputs::fail(const std::string& message) const {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("[{}] {}", op, message));
}

void OpInputs::expect_count(std::size_t count) const {
  if (types.size() == count) return;
  fail(fmt::format("takes {} input{}, was given {}", count, count == 1 ? "" : "s", types.size()));
}

const Op& OpRegistry::add(Op op) {
  const auto refuse = [&op](std::string_view why) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[{}] cannot be registered: {}", op.name, why));
  };
  if (op.name.empty()) refuse("it has no name");
  if (ops_.contains(op.name)) refuse("the name is taken");
  if (!op.infer) refuse("infer is missing");
  if (!op.cost) op.cost = cost_of_elements;
  if (!op.gradient && op.no_gradient.empty()) {
    refuse("it has neither a gradient nor a reason in no_gradient");
  }
  const std::string name = op.name;
  return *(ops_[name] = std::make_unique<Op>(std::move(op)));
}

const Op& OpRegistry::find(std::string_view name) const {
  if (const auto op = ops_.find(name); op != ops_.end()) return *op->second;
  std::vector<std::string_view> names;
  for (const auto& [known, op] : ops_) names.emplace_back(known);
  throw Error(ErrorCode::kNotFound,
              fmt::format("[{}] there is no such op{}", name, did_you_mean(name, names)));
}

std::vector<const Op*> OpRegistry::all() const {
  std::vector<const Op*> ops;
  for (const auto& [name, op] : ops_) ops.push_back(op.get());
  return ops;
}

const Op& register_op(OpRegistry& registry, Op op) {
  if (!op.kernel) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[{}] cannot be registered: kernel is missing", op.name));
  }
  return registry.add(std::move(op));
}

}  // namespace paceline
