// Pipelines as the input of a session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/input.h"
#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Labels = std::vector<std::int32_t>;

/// 20 images of one pixel, labelled by their number; batches of 3.
class PipelineFeedTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kImages = 20, kBatch = 3;

  PipelineFeedTest() {
    values_ = graph_.input("values", {kBatch, 3, 1, 1});
    labels_ = graph_.input("labels", {kBatch}, DType::kInt32);
    weights_ = graph_.input("weights", {kBatch});
    const Value w = graph_.variable("w", {3, 1}, Initializer::constant(1));
    loss_ = reduce_mean(square(matmul(reshape(values_, {kBatch, 3}), w)));
    options_.watch = {values_, labels_, weights_};
    run_.quiet = true;
    cluster_.threads = 1;
  }
  static Pipeline pipeline() {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
    for (std::int32_t i = 0; i < kImages; ++i) {
      pixels.insert(pixels.end(), 3, std::uint8_t(i));
      labels.push_back(i);
    }
    const RecordFormat format = {.size = {1, 1, 3}, .classes = kImages};
    return Pipeline(images_in_memory(pixels, labels, format))
        .shuffle(8)
        .distort({.height = 1, .width = 1, .standardise = false})
        .batch(kBatch)
        .threads(2);
  }
  PipelineFeed feed(const Pipeline& pipeline) const {
    return {pipeline, values_, labels_, weights_};
  }
  std::unique_ptr<Session> make() {
    return std::make_unique<Session>(minimize(loss_, Sgd{1e-6f}), cluster_, run_, options_);
  }
  /// Returns the labels that the last step saw.
  Labels seen(const Session& session) const {
    const auto labels = session.value(labels_).data<std::int32_t>();
    const auto values = session.value(values_).data<float>();
    for (std::size_t i = 0; i < kBatch; ++i) EXPECT_EQ(values[3 * i], float(labels[i]));
    return {labels.begin(), labels.end()};
  }
  std::vector<Labels> steps(Session& session, const std::function<void(Feed&)>& by, int steps) {
    std::vector<Labels> all;
    for (int i = 0; i < steps && session.step(by); ++i) all.push_back(seen(session));
    return all;
  }

  Graph graph_;
  Value values_, labels_, weights_, loss_;
  SessionOptions options_;
  RunOptions run_;
  Cluster cluster_;
};

TEST_F(PipelineFeedTest, FillsTheInputsUntilTheDataIsUsedUp) {
  const auto session = make();
  EXPECT_EQ(steps(*session, feed(pipeline()), 100).size(), 6u);
  EXPECT_THAT(session->value(weights_).data<float>(), ElementsAre(1, 1, 1));
  EXPECT_FALSE(session->ended());
}

TEST_F(PipelineFeedTest, ResumesWithTheVeryNextRecord) {
  constexpr int kSteps = 17;  // two epochs and a half
  const std::vector<Labels> unbroken = steps(*make(), feed(pipeline().repeat()), kSteps);
  const TemporaryFolder folder;
  run_.out = folder.path();
  run_.summary_every = {};
  std::vector<Labels> all;
  for (int step = 0; step < kSteps; ++step) {
    const auto session = make();
    const std::vector<Labels> one = steps(*session, feed(pipeline().repeat()), 1);
    all.insert(all.end(), one.begin(), one.end());
    run_.resume = true;
  }
  EXPECT_EQ(all, unbroken);
}

TEST_F(PipelineFeedTest, CountsNoRecordThatWasReadAheadAsUsed) {
  const auto session = make();
  steps(*session, feed(pipeline().repeat().prefetch(5)), 4);
  EXPECT_EQ(session->position().numbers.at("data.record"), 12);
  EXPECT_EQ(session->position().numbers.at("data.epoch"), 0);
}

TEST_F(PipelineFeedTest, GivesPassesToEvaluationsThatCountEachRecordOnce) {
  PipelineFeed data = feed(pipeline().batch(kBatch, LastBatch::kPad));
  const auto session = make();
  ASSERT_EQ(data.batches(), 7);
  for (int pass = 0; pass < 2; ++pass) {
    double records = 0, weights = 0, sum = 0;
    for (std::int64_t batch = 0; batch < data.batches(); ++batch) {
      const Value fetches[] = {reduce_sum(weights_), reduce_sum(values_)};
      const auto got =
          session->evaluate(graph_, fetches, [&](Feed& to) { records += double(data.fill(to)); });
      weights += got[0].item<float>();
      sum += got[1].item<float>() / 3;
    }
    EXPECT_EQ(records, 20);
    EXPECT_EQ(weights, 20);
    EXPECT_EQ(sum, 190);
  }
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { session->evaluate(loss_, data); }),
              HasSubstr("fill()"))
      << "each evaluation would get the first batch";
}

// Without the error, a program that calls run() until it returns false would never end.
TEST_F(PipelineFeedTest, ARunBehindTheLastEpochIsAnError) {
  const auto session = make();
  const PipelineFeed data = feed(pipeline());
  EXPECT_TRUE(session->run(data));
  EXPECT_EQ(session->last_step().step, 6);
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { session->run(data); }),
              HasSubstr("its epochs are over"));
}

TEST_F(PipelineFeedTest, AnEvaluationNeedsABatch) {
  const auto session = make();
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition,
                       [&] { session->evaluate(loss_, [](Feed& to) { to.stop(); }); }),
              HasSubstr("stopped in an evaluation"));
}

TEST_F(PipelineFeedTest, RefusesDataThatGivesNoBatch) {
  Graph graph;
  const Value values = graph.input("values", {21, 3, 1, 1});
  const Value labels = graph.input("labels", {21}, DType::kInt32);
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] { PipelineFeed(pipeline().batch(21), values, labels); }),
              HasSubstr("20 records give no batch of 21"));
}

TEST_F(PipelineFeedTest, RefusesInputsOfAnotherShape) {
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { feed(pipeline().batch(4)); }),
              HasSubstr("the batches have float32 (4,3,1,1), and their input 'values' is"));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { PipelineFeed(pipeline(), values_, {}); }),
              HasSubstr("is missing"));
}

}  // namespace
}  // namespace paceline
