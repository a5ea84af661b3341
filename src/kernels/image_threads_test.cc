// Tests that image ops give equal results, bit for bit, on any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/evaluate.h"
#include "kernels/testing/op_cases.h"

namespace paceline {
namespace {

TEST(ImageThreads, DoNotChangeABit) {
  OpCases cases;
  add_conv2d_cases(cases);
  add_pool2d_cases(cases);
  add_image_norm_cases(cases);
  RealClock clock;
  const auto one = make_device({.threads = 1}, clock), three = make_device({.threads = 3}, clock);
  for (const OpCase& c : cases) {
    Graph graph;
    Feeds feeds;
    std::vector<Value> inputs;
    for (const CaseInput& input : c.inputs) {
      const std::string name = "x" + std::to_string(inputs.size());
      feeds[name] = fill(input, false, inputs.size());
      inputs.push_back(graph.input(name, input.type.shape, input.type.dtype));
    }
    const std::vector<Value> outputs = c.build(graph, inputs);
    const auto a = evaluate_graph(outputs, feeds, *one), b = evaluate_graph(outputs, feeds, *three);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::size_t bytes = a[i].bytes();
      EXPECT_TRUE(bytes == 0 || std::memcmp(a[i].raw(), b[i].raw(), bytes) == 0)
          << c.op << " " << c.label << ", output " << i;
    }
  }
}

}  // namespace
}  // namespace paceline
