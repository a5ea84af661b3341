#include "train/graph_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/ops.h"
#include "summary/proto_reader.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;

// Returns "name op inputs…" for each node of a GraphDef message.
std::vector<std::string> nodes_of(std::string_view message) {
  std::vector<std::string> nodes;
  for (ProtoReader graph(message); graph.next();) {
    if (graph.field() != 1) continue;
    std::string text;
    for (ProtoReader node(graph.bytes()); node.next();) {
      if (node.field() <= 3) text += (text.empty() ? "" : " ") + std::string(node.bytes());
    }
    nodes.push_back(text);
  }
  return nodes;
}

TEST(GraphDef, HasEveryNodeWithItsInputs) {
  Graph graph;
  const Value x = graph.input("x", {2, 3});
  const auto scope = graph.scope("layer");
  relu(matmul(x, graph.variable("w", {3, 4})));
  EXPECT_THAT(nodes_of(graph_def(graph)),
              ElementsAre("x input", "layer/w variable", "layer/matmul matmul x layer/w",
                          "layer/relu relu layer/matmul"));
}

TEST(GraphDef, SaysTypesAndShapes) {
  Graph graph;
  graph.input("x", {2, 3}, DType::kInt64);
  const std::string bytes = graph_def(graph);
  using namespace std::literals;
  // A list with one shape of two dimensions, and DT_INT64.
  EXPECT_NE(bytes.find("\x0a\x0a\x3a\x08\x12\x02\x08\x02\x12\x02\x08\x03"sv), std::string::npos);
  EXPECT_NE(bytes.find("\x0a\x01T\x12\x02\x30\x09"sv), std::string::npos);
}

}  // namespace
}  // namespace paceline
