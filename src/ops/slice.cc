// slice and pad, each the other's gradient.
#include <fmt/format.h>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Dims = std::vector<std::int64_t>;

std::string str(const Dims& dims) { return fmt::format("({})", fmt::join(dims, ",")); }

std::vector<ValueType> infer_slice(const OpInputs& in) {
  in.expect_count(1);
  const Dims& begin = in.attributes.get<Dims>("begin");
  const Dims& size = in.attributes.get<Dims>("size");
  const Shape& x = in.shape(0);
  bool good = begin.size() == std::size_t(x.rank()) && size.size() == begin.size();
  for (std::size_t i = 0; good && i < begin.size(); ++i) {
    good =
        begin[i] >= 0 && size[i] >= 0 && begin[i] <= x[int(i)] && size[i] <= x[int(i)] - begin[i];
  }
  if (!good) in.fail(fmt::format("cannot take {} at {} of {}", str(size), str(begin), x.str()));
  return {{in.dtype(0), Shape(size)}};
}

std::vector<Gradient> gradient_of_slice(const Node& node, std::span<const Value> dy) {
  const Dims& begin = node.attributes().get<Dims>("begin");
  const Dims& size = node.attributes().get<Dims>("size");
  Dims after;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    after.push_back(node.input(0).shape()[int(i)] - begin[i] - size[i]);
  }
  return {pad(dy[0], begin, after)};
}

std::vector<ValueType> infer_pad(const OpInputs& in) {
  in.expect_count(1);
  const Dims& before = in.attributes.get<Dims>("before");
  const Dims& after = in.attributes.get<Dims>("after");
  const Shape& x = in.shape(0);
  bool good = before.size() == std::size_t(x.rank()) && after.size() == before.size();
  Dims dims;
  for (std::size_t i = 0; good && i < before.size(); ++i) {
    good = before[i] >= 0 && after[i] >= 0;
    dims.push_back(before[i] + x[int(i)] + after[i]);
  }
  if (!good) {
    in.fail(
        fmt::format("cannot pad {} by {} before and {} after", x.str(), str(before), str(after)));
  }
  return {{in.dtype(0), Shape(dims)}};
}

std::vector<Gradient> gradient_of_pad(const Node& node, std::span<const Value> dy) {
  const Shape& x = node.input(0).shape();
  return {
      slice(dy[0], node.attributes().get<Dims>("before"), Dims(x.dims().begin(), x.dims().end()))};
}

}  // namespace

void add_slice_ops(OpRegistry& ops) {
  Op slice;
  slice.name = "slice";
  slice.infer = infer_slice;
  slice.gradient = gradient_of_slice;
  slice.cost = [](const Node& node) {
    return Cost{0, 2 * output_elements(node) * double(size_of(node.outputs()[0].dtype))};
  };
  slice.view = [](const Node& node, int) {
    return first_of_part(node.input(0).shape(), node.attributes().get<Dims>("begin"),
                         node.attributes().get<Dims>("size"));
  };
  ops.add(std::move(slice));

  Op pad;
  pad.name = "pad";
  pad.infer = infer_pad;
  pad.gradient = gradient_of_pad;
  pad.cost = elementwise_cost(0);
  ops.add(std::move(pad));
}

Value slice(Value x, std::vector<std::int64_t> begin, std::vector<std::int64_t> size) {
  return x.graph().apply("slice", {x}, {{"begin", std::move(begin)}, {"size", std::move(size)}});
}

Value pad(Value x, std::vector<std::int64_t> before, std::vector<std::int64_t> after) {
  return x.graph().apply("pad", {x}, {{"before", std::move(before)}, {"after", std::move(after)}});
}

}  // namespace paceline
