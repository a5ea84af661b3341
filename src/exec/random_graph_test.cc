#include <gtest/gtest.h>

#include <cstring>

#include "base/philox.h"
#include "exec/plan_runner.h"
#include "kernels/evaluate.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

// Random graphs: a plan computes in reused memory, bit for bit, what node by node evaluation
// computes in separate memory.
class RandomGraph : public testing::TestWithParam<int> {
 protected:
  std::uint32_t pick(std::uint32_t below) {
    return philox(std::uint64_t(GetParam()), draws_++, 0)[0] % below;
  }
  Tensor random_tensor(const Shape& shape) {
    Tensor tensor(DType::kFloat32, shape);
    for (float& x : tensor.data<float>()) x = to_unit_float(philox(9, draws_++, 0)[0]) - 0.5f;
    return tensor;
  }
  // Two rows of this size are as long as the alignment of operands.
  static constexpr std::int64_t kSize = 8;
  // Joins two adjacent rows of `a`, from any row on, with all but the first two rows of `b`.
  Value part(const Value& a, const Value& b) {
    const auto row = std::int64_t(pick(kSize - 1));
    const Value rows = slice(a, {row, 0}, {2, kSize});
    return concat(std::vector<Value>{rows, slice(b, {2, 0}, {kSize - 2, kSize})}, 0);
  }
  // Joins a square from halves that kernels write, and from a half of an already joined square.
  Value joined(const Value& a, const Value& b) {
    const auto half_of = [&](const Value& x) { return split(x, 2, 0)[pick(2)]; };
    const Value pair =
        concat(std::vector<Value>{relu(half_of(a)),
                                  reshape(mul(half_of(b), half_of(a)), {kSize / 2, kSize})},
               0);
    if (pick(2) == 0) return pair;
    const Value more = concat(std::vector<Value>{tanh(half_of(b)), pair}, 0);
    return slice(more, {std::int64_t(pick(2)) * kSize / 2, 0}, {kSize, kSize});
  }
  // Returns a node over earlier values; all are squares of one size, so that any two fit.
  Value next(const std::vector<Value>& values) {
    const Value a = values[pick(std::uint32_t(values.size()))];
    const Value b = values[pick(std::uint32_t(values.size()))];
    switch (pick(13)) {
      case 0:
        return add(a, b);
      case 1:
        return mul(a, b);
      case 2:
        return sub(a, reshape(b, {kSize, kSize}));
      case 3:
        return relu(a);
      case 4:
        return sigmoid(a);
      case 5:
        return transpose(a);
      case 6:
        return reshape(tanh(reshape(a, {kSize * kSize})), {kSize, kSize});
      case 7:
        return matmul(a, b);
      case 8:
        return part(a, b);
      case 9:
        return reshape(relu(slice(reshape(concat(std::vector<Value>{a, b}, 1), {2 * kSize * kSize}),
                                  {std::int64_t(pick(3)) * 16}, {kSize * kSize})),
                       {kSize, kSize});
      case 10:
        return joined(a, b);
      case 11:
        return split(concat(std::vector<Value>{a, b}, 1), 2, 1)[0];
      default:
        return split(concat(std::vector<Value>{a, b}, 0), 2, 0)[1];
    }
  }
  std::uint64_t draws_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraph, testing::Range(0, 30));

TEST_P(RandomGraph, EqualsNodeByNodeEvaluation) {
  RealClock clock;
  const auto device = make_device({.kind = "naive"}, clock);
  Graph graph;
  Feeds feeds;
  std::map<std::string, Tensor> variables;
  std::vector<Value> values;
  for (const char* name : {"x", "y"}) {
    values.push_back(graph.input(name, {kSize, kSize}));
    feeds[name] = random_tensor({kSize, kSize});
  }
  values.push_back(graph.variable("w", {kSize, kSize}));
  variables["w"] = feeds["w"] = random_tensor({kSize, kSize});
  for (int i = 0; i < 25; ++i) values.push_back(next(values));
  std::vector<Value> fetches = {values.back()};
  for (int i = 0; i < 3; ++i) fetches.push_back(values[pick(std::uint32_t(values.size()))]);
  const std::vector<Tensor> expected = evaluate_graph(fetches, feeds, *device);

  for (const bool rewritten : {false, true}) {
    const PlanRequest request = {&graph, fetches, nullptr, true, {rewritten, rewritten, rewritten}};
    PlanRunner runner(request, variables, *device, clock);
    for (const char* name : {"x", "y"}) {
      const TensorView view = runner.executor->view(name);
      std::memcpy(view.data, feeds[name].raw(), view.bytes());
    }
    for (int step = 0; step < 2; ++step) {
      runner.run(step);
      for (std::size_t i = 0; i < fetches.size(); ++i) {
        const TensorView got = runner.executor->fetched(i);
        ASSERT_EQ(got.shape, expected[i].shape());
        EXPECT_EQ(std::memcmp(got.data, expected[i].raw(), got.bytes()), 0)
            << "fetch " << i << ", rewritten " << rewritten << "\n"
            << graph.text();
      }
    }
  }
}

}  // namespace
}  // namespace paceline
