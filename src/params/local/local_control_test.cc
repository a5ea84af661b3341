#include "params/local/local_control.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline {
namespace {

TEST(LocalControl, NobodyIsWaitedFor) {
  LocalControl control;
  EXPECT_TRUE(control.all_warm());
  EXPECT_TRUE(control.wait_all_done(Deadline::after(Duration(0))));
  EXPECT_TRUE(control.all_done());
  EXPECT_FALSE(control.state_asked());
  EXPECT_FALSE(control.others_save());
  EXPECT_FALSE(control.stop_asked());
}

TEST(LocalControl, BeginsWhereTheFirstStateWas) {
  LocalControl control;
  EXPECT_EQ(control.next_step(), 0);
  EXPECT_FALSE(control.restored().has_value());
  control.restore(std::vector<TaskState>{{.worker = 0, .step = 17, .position = {}, .local = {}},
                                         {.worker = 1, .step = 9, .position = {}, .local = {}}});
  EXPECT_EQ(control.next_step(), 17);
  EXPECT_EQ(control.restored()->step, 17);
}

}  // namespace
}  // namespace paceline
