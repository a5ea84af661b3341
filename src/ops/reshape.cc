#include <fmt/format.h>

#include <algorithm>

#include "base/open_dimension.h"
#include "ops/builtin_ops.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::string dims_str(const std::vector<std::int64_t>& dims) {
  std::vector<std::string> texts;
  for (const std::int64_t dim : dims) texts.push_back(dimension_text(dim));
  return fmt::format("({})", fmt::join(texts, ","));
}

/// Returns `dims` as a shape, in which the size that the other dimensions leave replaces a −1.
Shape resolve(const OpInputs& in, std::vector<std::int64_t> dims) {
  auto fail = [&] { in.fail("cannot make " + in.shape(0).str() + " into " + dims_str(dims)); };
  const std::int64_t elements = in.shape(0).elements();
  const auto open = std::find(dims.begin(), dims.end(), -1);
  if (open != dims.end()) {
    std::int64_t rest = 1;
    for (auto dim = dims.begin(); dim != dims.end(); ++dim) {
      if (dim != open) rest *= *dim;
    }
    if (rest <= 0 || elements % rest != 0) fail();
    *open = elements / rest;
  }
  if (std::any_of(dims.begin(), dims.end(), [](std::int64_t dim) { return dim < 0; })) fail();
  const Shape shape(dims);
  if (shape.elements() != elements) fail();
  return shape;
}

std::vector<ValueType> infer_reshape(const OpInputs& in) {
  in.expect_count(1);
  return {{in.dtype(0), resolve(in, in.attributes.get<std::vector<std::int64_t>>("shape"))}};
}

}  // namespace

void add_reshape_ops(OpRegistry& ops) {
  Op op;
  op.name = "reshape";
  op.infer = infer_reshape;
  op.gradient = [](const Node& node, std::span<const Value> dy) -> std::vector<Gradient> {
    return {reshape(dy[0], node.input(0).shape().dims())};
  };
  op.cost = [](const Node&) { return Cost{}; };
  op.view = [](const Node&, int) { return std::int64_t{0}; };
  ops.add(std::move(op));

  Op stop;
  stop.name = "stop_gradient";
  stop.infer = [](const OpInputs& in) -> std::vector<ValueType> {
    in.expect_count(1);
    return {in.types[0]};
  };
  stop.gradient = [](const Node&, std::span<const Value>) { return std::vector<Gradient>(1); };
  stop.cost = [](const Node&) { return Cost{}; };
  stop.view = [](const Node&, int) { return std::int64_t{0}; };
  ops.add(std::move(stop));
}

Value stop_gradient(Value x) { return x.graph().apply("stop_gradient", {x}); }

Value reshape(Value x, std::span<const std::int64_t> dims) {
  return x.graph().apply("reshape", {x},
                         {{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())}});
}

Value reshape(Value x, std::initializer_list<std::int64_t> dims) {
  return reshape(x, std::span<const std::int64_t>(dims.begin(), dims.size()));
}

}  // namespace paceline
