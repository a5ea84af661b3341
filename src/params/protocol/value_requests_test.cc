#include "params/protocol/value_requests.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline {
namespace {

constexpr ValueUse kUpdated{.updated = true};

TEST(ValueRequests, TrainingPullsOnlyWhatItsContributionDoesNotBring) {
  EXPECT_TRUE(must_pull(StepKind::kTrain, Freshness::kNothing, kUpdated));
  EXPECT_FALSE(must_pull(StepKind::kTrain, Freshness::kByTraining, kUpdated));
  EXPECT_TRUE(must_pull(StepKind::kTrain, Freshness::kByTraining, {})) << "others may contribute";
  EXPECT_FALSE(must_pull(StepKind::kTrain, Freshness::kByTraining, {.trained = false}));
  EXPECT_TRUE(must_pull(StepKind::kTrain, Freshness::kByFetch, kUpdated));
}

TEST(ValueRequests, AnEvaluationPullsWholeValuesOnce) {
  EXPECT_TRUE(must_pull(StepKind::kEvaluate, Freshness::kByTraining, {.sparse = true}));
  EXPECT_FALSE(must_pull(StepKind::kEvaluate, Freshness::kWhole, {}));
}

TEST(ValueRequests, NothingIsPulledThatIsReadInPlaceNorRowsAsAWhole) {
  EXPECT_FALSE(must_pull(StepKind::kTrain, Freshness::kNothing, {.in_place = true}));
  EXPECT_FALSE(must_pull(StepKind::kTrain, Freshness::kNothing, {.sparse = true}));
}

TEST(ValueRequests, ACopyIsRenewedUnlessThisPlansContributionHasRenewedIt) {
  constexpr ValueUse kCopied{.in_place = true, .in_copy = true, .updated = true};
  EXPECT_FALSE(must_renew_copy(StepKind::kTrain, Freshness::kByTraining, kCopied));
  EXPECT_TRUE(must_renew_copy(StepKind::kTrain, Freshness::kNothing, kCopied));
  EXPECT_TRUE(must_renew_copy(StepKind::kFetch, Freshness::kByTraining, kCopied));
  EXPECT_TRUE(must_renew_copy(StepKind::kTrain, Freshness::kByTraining,
                              {.in_place = true, .in_copy = true}));
  EXPECT_FALSE(must_renew_copy(StepKind::kTrain, Freshness::kNothing, {.in_place = true}));
}

TEST(ValueRequests, OfAValueThatIsReadInPlaceNothingIsHeld) {
  EXPECT_EQ(freshness_after(StepKind::kTrain, {.in_place = true}), Freshness::kNothing);
  EXPECT_EQ(freshness_after(StepKind::kTrain, {}), Freshness::kByTraining);
  EXPECT_EQ(freshness_after(StepKind::kEvaluate, {}), Freshness::kWhole);
  EXPECT_EQ(freshness_after(StepKind::kFetch, {}), Freshness::kByFetch);
}

TEST(ValueRequests, RowsThatTheStepsEndAskedForAreNotAskedForAgain) {
  const std::vector<std::int32_t> ids = {3, 8};
  RowsAhead rows;
  rows.add(5);
  EXPECT_FALSE(rows.on_their_way({5, ids}, 0));
  rows.ended(7, std::vector<RowSet>{{5, ids}});
  EXPECT_TRUE(rows.on_their_way({5, ids}, 7));
  EXPECT_FALSE(rows.on_their_way({5, ids}, 8)) << "the store was used since";
  EXPECT_FALSE(rows.on_their_way({5, std::span(ids).first(1)}, 7));
  EXPECT_FALSE(rows.on_their_way({4, ids}, 7)) << "a dense variable";
  rows.ended(9, {});
  EXPECT_FALSE(rows.on_their_way({5, ids}, 9));
}

}  // namespace
}  // namespace paceline
