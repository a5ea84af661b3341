#include "checkpoint/best_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/testing/error_of.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/testing/folder.h"
#include "checkpoint/testing/sample_checkpoint.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BestKeeperOfARun : public ::testing::Test {
 protected:
  BestKeeper keeper(const BestBy& by) {
    return {checkpoints_, by, [this](const std::string& line) { said_.push_back(line); }};
  }
  void save(std::int64_t step) { save_sample(folder_.path(), step, 1); }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> all;
    for (const auto& found : checkpoints_.list(WholeCheck::kSizes)) all.push_back(found.step);
    return all;
  }
  std::int64_t best() const { return checkpoints_.best(WholeCheck::kSizes).step; }

  const Folder folder_;
  const Checkpoints checkpoints_{folder_.path()};
  std::vector<std::string> said_;
};

const BestBy kSmallestLoss{"loss/valid", false};

TEST_F(BestKeeperOfARun, MarksTheSmallestOrTheLargest) {
  for (const std::int64_t step : {1, 2, 3, 4}) save(step);
  BestKeeper smallest = keeper(kSmallestLoss);
  EXPECT_TRUE(smallest.note(1, 0.5));
  EXPECT_TRUE(smallest.note(2, 0.25));
  EXPECT_FALSE(smallest.note(3, 0.25)) << "of equal ones the first stays";
  EXPECT_FALSE(smallest.note(4, NAN));
  EXPECT_EQ(best(), 2);
  BestKeeper largest = keeper({"precision/valid", true});
  EXPECT_THAT(said_.back(), HasSubstr("of step 2, is that by loss/valid"));
  EXPECT_FALSE(largest.note(1, INFINITY));
  EXPECT_TRUE(largest.note(1, 0.5));
  EXPECT_TRUE(largest.note(3, 0.75));
  EXPECT_EQ(best(), 3);
}

TEST_F(BestKeeperOfARun, KeepsTheBestBesideTheNewestAndThoseInUse) {
  for (const std::int64_t step : {1, 2, 3, 4, 5, 6}) save(step);
  keeper(kSmallestLoss).note(2, 0.5);
  const std::int64_t in_use[] = {3};
  checkpoints_.keep_last(2, in_use);
  EXPECT_THAT(steps(), ElementsAre(6, 5, 3, 2));
  checkpoints_.keep_last(1);
  EXPECT_THAT(steps(), ElementsAre(6, 2));
}

TEST_F(BestKeeperOfARun, GoesOnFromTheMarkThatIsThere) {
  save(1);
  save(2);
  keeper(kSmallestLoss).note(1, 0.5);
  EXPECT_FALSE(keeper(kSmallestLoss).note(2, 0.75));
  EXPECT_EQ(best(), 1);
  checkpoints_.remove(1);
  BestKeeper anew = keeper(kSmallestLoss);
  EXPECT_THAT(said_.back(), HasSubstr("the best is sought anew"));
  EXPECT_FALSE(anew.note(1, 0.1)) << "it is not there";
  EXPECT_TRUE(anew.note(2, 0.75));
}

TEST_F(BestKeeperOfARun, TakesReportsOfEvaluationsBesideTheRun) {
  save(1);
  save(2);
  BestKeeper keeps = keeper(kSmallestLoss);
  checkpoints_.report({1, {{"loss/valid", 0.5}, {"precision/valid", 0.9}}});
  checkpoints_.report({2, {{"loss/valid", 0.25}}});
  checkpoints_.report({3, {{"loss/valid", 0.1}}});
  folder_.write("evaluated-9.json", "{");
  keeps.take_reports();
  EXPECT_EQ(best(), 2);
  EXPECT_THAT(checkpoints_.reports(), IsEmpty());
  EXPECT_THAT(said_.back(), HasSubstr("passes over an evaluation"));
  checkpoints_.report({1, {{"loss/valid", 0.125}}});
  take_late_reports(checkpoints_, [](const std::string&) {});
  EXPECT_EQ(best(), 1);
}

TEST_F(BestKeeperOfARun, TheBestCanBeNamed) {
  EXPECT_THAT(error_of([&] { find_checkpoint(folder_.path() + ":best", WholeCheck::kSizes); }),
              AllOf(HasSubstr("no checkpoint in"), HasSubstr("--keep-best NAME")));
  save(1);
  BestKeeper keeps = keeper(kSmallestLoss);
  EXPECT_THAT(error_of([&] { find_checkpoint(folder_.path() + ":best", WholeCheck::kSizes); }),
              HasSubstr("none was evaluated yet"));
  keeps.note(1, 0.5);
  save(2);
  EXPECT_EQ(find_checkpoint(folder_.path() + ":best", WholeCheck::kChecksums).path,
            checkpoints_.path_of(1));
  EXPECT_EQ(find_checkpoint(folder_.path(), WholeCheck::kChecksums).path, checkpoints_.path_of(2));
  folder_.write("step-1/shard-0-of-1.safetensors", "");
  EXPECT_THAT(error_of([&] { find_checkpoint(folder_.path() + ":best", WholeCheck::kSizes); }),
              HasSubstr("the index says"));
  EXPECT_THAT(error_of([&] { find_checkpoint("none:best", WholeCheck::kSizes); }),
              HasSubstr("none:best: none is no folder of a run"));
}

TEST_F(BestKeeperOfARun, AMarkThatCannotBeReadDeletesNothing) {
  for (const std::int64_t step : {1, 2, 3}) save(step);
  for (const char* bad : {"", "{", R"({"version":2})", R"({"version":1,"name":"a","best":"most"})",
                          R"({"version":1,"name":"a","best":"min","step":-1})",
                          R"({"version":1,"name":"a","best":"min","step":1,"value":"x"})"}) {
    folder_.write("best.json", bad);
    EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { checkpoints_.keep_last(1); }),
                HasSubstr(folder_.path("best.json")))
        << bad;
  }
  EXPECT_THAT(steps(), ElementsAre(3, 2, 1));
  checkpoints_.remove_mark();
  EXPECT_FALSE(checkpoints_.mark());
}

}  // namespace
}  // namespace paceline::testing
