#include "graph/initializer_of.h"

namespace paceline {

void set_initializer(Attributes& attributes, const Initializer& initializer) {
  attributes.set("init_kind", std::int64_t(initializer.kind));
  attributes.set("init_a", double(initializer.a));
  attributes.set("init_b", double(initializer.b));
  attributes.set("init_glorot", initializer.glorot);
  if (initializer.given.defined()) attributes.set("init_given", initializer.given);
}

Initializer initializer_of(const Node& variable) {
  const Attributes& attributes = variable.attributes();
  return {Initializer::Kind(attributes.get<std::int64_t>("init_kind")),
          float(attributes.get<double>("init_a")), float(attributes.get<double>("init_b")),
          attributes.get<bool>("init_glorot"),
          attributes.has("init_given") ? attributes.get<Tensor>("init_given") : Tensor()};
}

}  // namespace paceline
