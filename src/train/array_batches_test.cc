#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/error.h"
#include "paceline/input.h"
#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

/// Ten examples in batches of 4. An example has an id, and a row of two numbers that follow from
/// the id.
class ArrayBatchesTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kExamples = 10, kBatch = 4;

  ArrayBatchesTest() {
    ids_ = graph_.input("ids", {kBatch}, DType::kInt32);
    rows_ = graph_.input("rows", {kBatch, 2});
    weights_ = graph_.input("weights", {kBatch});
    const Value w = graph_.variable("w", {2, 1}, Initializer::constant(1));
    loss_ = reduce_mean(square(matmul(rows_, w)));
    for (std::int32_t i = 0; i < kExamples; ++i) {
      const auto at = std::size_t(i);
      all_ids_.data<std::int32_t>()[at] = i;
      all_rows_.data<float>()[2 * at] = float(i);
      all_rows_.data<float>()[2 * at + 1] = float(-i);
    }
    options_.watch = {ids_, rows_, weights_};
    run_.quiet = true;
    cluster_.threads = 1;
  }
  ArrayBatches batches(ArrayBatchesOptions options) {
    options.weights = weights_;
    return ArrayBatches({{ids_, all_ids_}, {rows_, all_rows_}}, options);
  }
  std::unique_ptr<Session> make() {
    return std::make_unique<Session>(minimize(loss_, Sgd{1e-6f}), cluster_, run_, options_);
  }
  /// Returns the ids that the last step saw; −1 for a row that only fills up the batch.
  Ids seen(const Session& session) const {
    Ids ids;
    const auto id = session.value(ids_).data<std::int32_t>();
    const auto row = session.value(rows_).data<float>();
    const auto weight = session.value(weights_).data<float>();
    for (std::size_t i = 0; i < id.size(); ++i) {
      EXPECT_EQ(row[2 * i], float(id[i]));
      EXPECT_EQ(row[2 * i + 1], -float(id[i]));
      EXPECT_TRUE(weight[i] == 1 || id[i] == 0) << "filled up with zeros";
      ids.push_back(weight[i] > 0 ? id[i] : -1);
    }
    return ids;
  }
  /// Makes steps until an epoch ends. Returns all ids in the order in which the steps saw them.
  Ids epoch(Session& session, const std::function<void(Feed&)>& feed) const {
    Ids ids;
    while (session.step(feed)) {
      const Ids batch = seen(session);
      ids.insert(ids.end(), batch.begin(), batch.end());
    }
    return ids;
  }

  Graph graph_;
  Value ids_, rows_, weights_, loss_;
  Tensor all_ids_{DType::kInt32, {kExamples}}, all_rows_{DType::kFloat32, {kExamples, 2}};
  SessionOptions options_;
  RunOptions run_;
  Cluster cluster_;
};

TEST_F(ArrayBatchesTest, InTheirOrderWithoutAnIncompleteBatchOrFilledUp) {
  const auto session = make();
  auto dropped = batches({.shuffle = false});
  EXPECT_EQ(dropped.size(), 2);
  EXPECT_THAT(epoch(*session, std::ref(dropped)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(dropped.epoch(session->position()), 1);
  auto padded = batches({.shuffle = false, .last = LastBatch::kPad, .name = "padded"});
  EXPECT_EQ(padded.size(), 3);
  EXPECT_THAT(epoch(*session, std::ref(padded)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -1));
}

TEST_F(ArrayBatchesTest, ShuffledByEpochAndSeedEachExampleOnce) {
  const auto session = make();
  const auto feed = prefetch(batches({.last = LastBatch::kPad}));
  const Ids first = epoch(*session, feed), second = epoch(*session, feed);
  for (Ids ids : {first, second}) {
    std::ranges::sort(ids);
    EXPECT_THAT(ids, ElementsAre(-1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
  EXPECT_NE(first, second);
  EXPECT_EQ(epoch(*make(), batches({.last = LastBatch::kPad})), first);
  EXPECT_NE(epoch(*make(), batches({.seed = 2, .last = LastBatch::kPad})), first);
}

TEST_F(ArrayBatchesTest, PartsOfAnEpochHaveNoExampleInCommon) {
  std::set<std::int32_t> all;
  for (int part = 0; part < 2; ++part) {
    const auto session = make();
    const auto data = batches({.part = part, .parts = 2});
    EXPECT_EQ(data.examples(), 5);
    const Ids ids = epoch(*session, data);
    EXPECT_EQ(ids.size(), 4U);
    all.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(all.size(), 8U);
}

TEST_F(ArrayBatchesTest, GoOnWhereACheckpointWasWritten) {
  const auto unbroken = make();
  const auto once = prefetch(batches({}));
  Ids expected = epoch(*unbroken, once);
  const Ids second = epoch(*unbroken, once);
  expected.insert(expected.end(), second.begin(), second.end());

  const TemporaryFolder folder;
  run_.out = folder.path();
  run_.summary_every = {};
  Ids ids;
  for (int part = 0; part < 4; ++part) {
    const auto session = make();
    const auto feed = prefetch(batches({}));
    const bool made = session->step(feed).has_value();
    ASSERT_TRUE(made || session->step(feed)) << "an epoch ended";
    const Ids batch = seen(*session);
    ids.insert(ids.end(), batch.begin(), batch.end());
    run_.resume = true;
  }
  EXPECT_EQ(ids, expected);
}

TEST_F(ArrayBatchesTest, GoOnAfterAsManyExamplesWithBatchesOfAnotherSize) {
  const TemporaryFolder folder;
  run_.out = folder.path();
  run_.summary_every = {};
  {
    const auto session = make();
    auto data = batches({.shuffle = false});
    ASSERT_TRUE(session->step(std::ref(data)));
    ASSERT_TRUE(session->step(std::ref(data)));
  }
  run_.resume = true;
  Graph graph;
  const Value ids = graph.input("ids", {3}, DType::kInt32);
  const Value w = graph.variable("w", {2, 1}, Initializer::constant(1));
  Session session(minimize(reduce_sum(square(w)), Sgd{1e-6f}), cluster_, run_, {.watch = {ids}});
  ArrayBatches data({{ids, all_ids_}}, {.shuffle = false, .last = LastBatch::kPad});
  ASSERT_TRUE(session.step(std::ref(data)));
  // Eight examples were used. Batches of 3 go on after six, so this batch repeats two of the eight.
  EXPECT_THAT(session.value(ids).data<std::int32_t>(), ElementsAre(6, 7, 8));
  ASSERT_TRUE(session.step(std::ref(data)));
  EXPECT_THAT(session.value(ids).data<std::int32_t>(), ElementsAre(9, 0, 0));
  EXPECT_FALSE(session.step(std::ref(data)));
  EXPECT_EQ(data.epoch(session.position()), 1);
}

TEST_F(ArrayBatchesTest, GiveAnyBatchToAnEvaluation) {
  const auto session = make();
  auto data = batches({.shuffle = false, .last = LastBatch::kPad});
  const auto ids_of = [&](std::int64_t batch) {
    return session->evaluate(ids_,
                             [&](Feed& f) { EXPECT_EQ(data.fill(f, batch), batch < 2 ? 4 : 2); });
  };
  EXPECT_EQ(ids_of(2).data<std::int32_t>()[1], 9);
  EXPECT_EQ(ids_of(0).data<std::int32_t>()[3], 3);
  EXPECT_THROW(ids_of(3), Error);
  for (const std::function<void(Feed&)>& feed :
       {std::function<void(Feed&)>(data), prefetch(data)}) {
    EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { session->evaluate(ids_, feed); }),
                HasSubstr("fill()"))
        << "each evaluation would get the first batch";
  }
}

TEST_F(ArrayBatchesTest, SayWhatTheySayOfUnlikeNumbersAndOfTooFew) {
  const Tensor nine(DType::kFloat32, {9, 2});
  EXPECT_THAT(error_of([&] {
                ArrayBatches({{ids_, all_ids_}, {rows_, nine}});
              }),
              HasSubstr("the array of input 'ids' has 10 examples, and that of 'rows' 9"));
  const auto of_parts = [&](int parts) {
    return error_of([&] { ArrayBatches({{ids_, all_ids_}}, {.parts = parts}); });
  };
  EXPECT_THAT(of_parts(5),
              HasSubstr("10 examples in 5 parts give no batch of 4: LastBatch::kShort"));
  EXPECT_THAT(of_parts(11), HasSubstr("each part needs one"));
}

TEST_F(ArrayBatchesTest, RefusesWhatDoesNotFit) {
  const auto refused = [&](std::vector<std::pair<Value, Tensor>> arrays,
                           const ArrayBatchesOptions& options = {}) {
    EXPECT_THROW(ArrayBatches(std::move(arrays), options), Error);
  };
  refused({});
  refused({{ids_, all_rows_}});
  refused({{ids_, Tensor(DType::kInt64, {kExamples})}});
  refused({{rows_, Tensor(DType::kFloat32, {kExamples, 3})}});
  refused({{ids_, all_ids_}, {rows_, Tensor(DType::kFloat32, {kExamples + 1, 2})}});
  refused({{ids_, Tensor(DType::kInt32, {3})}});
  refused({{ids_, all_ids_}}, {.parts = 3});
  refused({{ids_, all_ids_}}, {.part = 2, .parts = 2});
  refused({{ids_, all_ids_}}, {.weights = rows_});
}

}  // namespace
}  // namespace paceline
