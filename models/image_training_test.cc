#include "models/image_training.h"
#include "paceline/zoo_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "paceline/ops.h"

namespace paceline::models {
namespace {

// Returns `count` grey images with labels 0, 1, …, 9, 0, …
Pipeline grey_images(std::int64_t count, std::int64_t batch) {
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(std::int32_t(i % 10));
  const std::vector<std::uint8_t> pixels(std::size_t(count) * 3072, 100);
  Pipeline images(images_in_memory(pixels, labels));
  images.distort(resnet_distortion(false, 1)).batch(batch, LastBatch::kPad);
  return images;
}

// Returns a classifier whose logits do not depend on the image: 0 for all classes but the last,
// `of_last` for the last one.
Classifier biased_classifier(Graph& graph, std::int64_t batch, float of_last) {
  Classifier classifier{.images = graph.input("images", {batch, 3, 32, 32}), .logits = {}};
  std::vector<float> biases(10, 0.0f);
  biases[9] = of_last;
  const Value bias = graph.variable("bias", {10}, Initializer::zeros()) +
                     graph.constant(Tensor::of<float>({10}, biases));
  const Value nothing = reduce_sum(classifier.images * 0.0f, {1, 2, 3});
  classifier.logits = reshape(nothing, {batch, 1}) + bias;
  return classifier;
}

Evaluation score_of(std::int64_t images, std::int64_t batch, float of_last) {
  Graph graph;
  const Classifier classifier = biased_classifier(graph, batch, of_last);
  RunOptions run;
  run.quiet = true;
  Session session(graph, {}, run);
  Evaluator evaluator(session);
  evaluator.take_values();
  return score_images(evaluator, classifier, grey_images(images, batch));
}

TEST(ImageScore, CountsEachImageOnceThoughTheLastBatchIsFilledUp) {
  const Evaluation score = score_of(25, 10, 0);
  EXPECT_NEAR(score.loss, std::log(10.0), 1e-6);
  EXPECT_NEAR(score.precision, 3.0 / 25, 1e-12) << "the first of equal logits is class 0";
}

TEST(ImageScore, IsTheCrossEntropyAndTheShareOfRightGuesses) {
  const Evaluation score = score_of(20, 10, 2);
  const double sum = std::log(9 + std::exp(2.0));
  EXPECT_NEAR(score.loss, 0.9 * sum + 0.1 * (sum - 2), 1e-6);
  EXPECT_NEAR(score.precision, 0.1, 1e-12);
}

}  // namespace
}  // namespace paceline::models
