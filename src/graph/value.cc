#include <fmt/format.h>

#include "paceline/error.h"
#include "paceline/graph.h"

namespace paceline {
namespace {

const Node& made(const Node* node) {
  if (node != nullptr) return *node;
  throw Error(ErrorCode::kInvalidArgument, "[value] a default-made Value is used: it is no value");
}

}  // namespace

std::string ValueType::str() const { return fmt::format("{} {}", name_of(dtype), shape.str()); }

Graph& Value::graph() const { return made(node_).graph(); }

const ValueType& Value::type() const { return made(node_).outputs()[std::size_t(output_)]; }

std::string Value::name() const {
  return output_ == 0 ? made(node_).name() : fmt::format("{}:{}", node_->name(), output_);
}

}  // namespace paceline
