#include <fmt/format.h>

#include "paceline/graph.h"

namespace paceline {

std::string ValueType::str() const { return fmt::format("{} {}", name_of(dtype), shape.str()); }

Graph& Value::graph() const { return node_->graph(); }

const ValueType& Value::type() const { return node_->outputs()[std::size_t(output_)]; }

std::string Value::name() const {
  return output_ == 0 ? node_->name() : fmt::format("{}:{}", node_->name(), output_);
}

}  // namespace paceline
