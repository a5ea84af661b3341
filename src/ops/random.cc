#include <fmt/format.h>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

Shape declared_shape(const OpInputs& in) {
  in.expect_count(0);
  return Shape(in.attributes.get<std::vector<std::int64_t>>("shape"));
}

// Real numbers in float32, or in the type that the attribute `dtype` names.
std::vector<ValueType> infer_real(const OpInputs& in) {
  const DType dtype =
      in.attributes.has("dtype") ? in.attributes.get<DType>("dtype") : DType::kFloat32;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
    in.fail(fmt::format("cannot draw {}", name_of(dtype)));
  }
  return {{dtype, declared_shape(in)}};
}

std::vector<ValueType> infer_random_normal(const OpInputs& in) {
  in.attributes.get<double>("mean");
  const double stddev = in.attributes.get<double>("stddev");
  if (!(stddev >= 0)) in.fail(fmt::format("standard deviation {} is negative", stddev));
  return infer_real(in);
}

std::vector<ValueType> infer_random_uniform(const OpInputs& in) {
  const double low = in.attributes.get<double>("low"), high = in.attributes.get<double>("high");
  if (!(low <= high)) in.fail(fmt::format("the range [{},{}) is empty", low, high));
  return infer_real(in);
}

std::vector<ValueType> infer_random_integers(const OpInputs& in) {
  const std::int64_t low = in.attributes.get<std::int64_t>("low");
  const std::int64_t high = in.attributes.get<std::int64_t>("high");
  constexpr std::int64_t kEnd = std::int64_t{1} << 31;
  if (low >= high || low < -kEnd || high > kEnd) {
    in.fail(fmt::format("[{},{}) is empty or leaves int32", low, high));
  }
  return {{DType::kInt32, declared_shape(in)}};
}

Op random_op(const char* name, std::vector<ValueType> (*infer)(const OpInputs&), double flops) {
  Op op;
  op.name = name;
  op.infer = infer;
  op.no_gradient = "it has no inputs";
  op.cost = [flops](const Node& node) {
    return Cost{flops * double(node.outputs()[0].shape.elements()), moved_bytes(node)};
  };
  op.stateful = true;
  return op;
}

std::vector<std::int64_t> dims_attribute(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

}  // namespace

void add_random_ops(OpRegistry& ops) {
  ops.add(random_op("random_normal", infer_random_normal, 40));
  ops.add(random_op("random_uniform", infer_random_uniform, 22));
  ops.add(random_op("random_integers", infer_random_integers, 22));
}

Value random_normal(Graph& graph, const Shape& shape, double mean, double stddev) {
  return graph.apply("random_normal", {},
                     {{"shape", dims_attribute(shape)}, {"mean", mean}, {"stddev", stddev}});
}

Value random_uniform(Graph& graph, const Shape& shape, double low, double high) {
  return graph.apply("random_uniform", {},
                     {{"shape", dims_attribute(shape)}, {"low", low}, {"high", high}});
}

Value random_integers(Graph& graph, const Shape& shape, std::int64_t low, std::int64_t high) {
  return graph.apply("random_integers", {},
                     {{"shape", dims_attribute(shape)}, {"low", low}, {"high", high}});
}

}  // namespace paceline
