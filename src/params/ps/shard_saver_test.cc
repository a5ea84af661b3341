#include "params/ps/ps_driver.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "params/protocol/placement.h"
#include "params/shard/shard.h"

namespace paceline {
namespace {

SavedShard of_step(std::int64_t global_step) {
  SavedShard saved;
  saved.global_step = global_step;
  return saved;
}

// The saving thread tells the chief of the end of a save. The chief may then begin the next save
// before that thread continues.
TEST(ShardSaver, TheNextMarkMayComeBeforeTheLastSaveHasReturnedFromTelling) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {4}, .rule = Add{}}};
  ApplyPool pool(1);
  Shard shard(variables, place_variables(variables, 1), 0, pool);
  ShardSaver saving(false);
  saving.mark(shard, of_step(1));
  std::promise<std::int64_t> first, second;
  saving.write(shard, "", [&](const SavedShard& saved) {
    saving.mark(shard, of_step(2));
    first.set_value(saved.global_step);
  });
  EXPECT_EQ(first.get_future().get(), 1);
  SavedShard next;
  saving.write(shard, "", [&](const SavedShard& saved) {
    next = saved;
    second.set_value(saved.global_step);
  });
  EXPECT_EQ(second.get_future().get(), 2);
  EXPECT_EQ(next.error, "");
}

}  // namespace
}  // namespace paceline
