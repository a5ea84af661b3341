#include "models/airbench_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "paceline/session.h"

namespace paceline::models {
namespace {

Tensor evaluated(const Graph& graph, Value value, Value input, const Tensor& fed) {
  RunOptions run;
  run.quiet = true;
  Session session(graph, {}, run);
  const Value fetches[] = {value};
  return session.evaluate(graph, fetches, [&](Feed& feed) { feed.set(input, fed); })[0];
}

TEST(ImageViews, AreShiftedAndMirrored) {
  Graph graph;
  const Value images = graph.input("images", {1, 1, 3, 3});
  const Tensor views = evaluated(graph, image_views(images), images,
                                 Tensor::of<float>({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const std::vector<std::vector<float>> wanted = {
      {1, 2, 3, 4, 5, 6, 7, 8, 9}, {5, 4, 5, 2, 1, 2, 5, 4, 5}, {5, 6, 5, 8, 9, 8, 5, 6, 5},
      {3, 2, 1, 6, 5, 4, 9, 8, 7}, {5, 4, 5, 2, 1, 2, 5, 4, 5}, {5, 6, 5, 8, 9, 8, 5, 6, 5}};
  ASSERT_EQ(views.shape(), (Shape{kImageViews, 1, 3, 3}));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto view = views.data<float>().subspan(i * 9, 9);
    EXPECT_TRUE(std::ranges::equal(view, wanted[i])) << "view " << i;
  }
}

TEST(ImageViews, CountAsTheirWeights) {
  Graph graph;
  const Value logits = graph.input("logits", {12, 1});
  const Tensor mean = evaluated(graph, mean_of_views(logits), logits,
                                Tensor::of<float>({12, 1}, {8, 0, 0, 8, 0, 0, 0, 0, 0, 0, 8, 80}));
  ASSERT_EQ(mean.shape(), (Shape{2, 1}));
  EXPECT_EQ(mean.data<float>()[0], 3);   // 8·¼ of the first view, 8·⅛ of the last one
  EXPECT_EQ(mean.data<float>()[1], 11);  // 8·⅛ of the second view, 80·⅛ of the last
}

}  // namespace
}  // namespace paceline::models
