#include "exec/executor.h"

#include <gtest/gtest.h>

#include "paceline/error.h"

namespace paceline {
namespace {

TEST(LocalMemory, BeginsAtZeroAndGoesBackToIt) {
  Graph graph;
  graph.local("h", {2});
  graph.local("steps", {}, DType::kInt64);
  graph.input("x", {1});
  RealClock clock;
  const auto device = make_device({.kind = "naive"}, clock);
  LocalMemory locals(graph, *device);

  EXPECT_TRUE(locals.contains("h"));
  EXPECT_FALSE(locals.contains("x"));
  const TensorView h = locals.view("h");
  EXPECT_EQ(h.shape, Shape{2});
  EXPECT_EQ(h.as<float>()[1], 0);
  h.as<float>()[1] = 3;
  *locals.view("steps").as<std::int64_t>() = 4;
  EXPECT_EQ(locals.view("h").as<float>()[1], 3);
  locals.reset();
  EXPECT_EQ(h.as<float>()[1], 0);
  EXPECT_EQ(*locals.view("steps").as<std::int64_t>(), 0);
  EXPECT_THROW(locals.view("x"), Error);
}

TEST(LocalMemory, OfAGraphWithoutLocalsIsEmpty) {
  const Graph graph;
  RealClock clock;
  const auto device = make_device({.kind = "naive"}, clock);
  LocalMemory locals(graph, *device);
  locals.reset();
  EXPECT_TRUE(locals.views().empty());
}

}  // namespace
}  // namespace paceline
