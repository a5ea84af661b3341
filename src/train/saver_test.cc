#include "train/saver.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace paceline {
namespace {

/// A store whose values are all of the same step.
class StoreOfStep : public StoreSaving {
 public:
  explicit StoreOfStep(std::int64_t step) : step_(step) {}
  std::vector<std::string> prepare_saving(const std::string&) override { return {}; }
  void mark() override {}
  SavedShards write_shards(const std::string&) override {
    return {.global_step = step_, .files = {}, .variables = {}, .others = {}};
  }

 private:
  const std::int64_t step_;
};

TEST(Saver, TheSavedStepIsThatOfTheValuesAndNotTheOneItWasStartedWith) {
  const TemporaryFolder folder;
  StoreOfStep store(288);
  const auto silent = [](const std::string&) {};
  Saver saver({.store = store, .folder = folder.path(), .say = silent, .complain = silent});
  EXPECT_EQ(saver.saved_step(), -1);
  saver.start({}, 300);
  EXPECT_EQ(saver.saved_step(), 288);
  EXPECT_EQ(Checkpoints(folder.path()).newest_whole(WholeCheck::kSizes).whole->step, 288);
}

}  // namespace
}  // namespace paceline
