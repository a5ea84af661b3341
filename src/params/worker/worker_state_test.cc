#include "params/worker/worker_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using testing::HasSubstr;

constexpr Duration kReplyTimeout = std::chrono::milliseconds(20);

class WorkerStateTest : public testing::Test {
 protected:
  WorkerStateTest() { core_.set_link(link_.get(), LinkOptions{}.spin); }

  static PsStoreOptions of_one_ps() {
    PsStoreOptions options;
    options.spec.ps = {"ps:1"};
    options.reply_timeout = kReplyTimeout;
    return options;
  }

  const std::unique_ptr<Link> link_ = make_link("tcp", {});
  const PsStoreOptions options_ = of_one_ps();
  WorkerState core_{{}, options_};
};

// All the bytes together take ten times as long as one reply may take.
TEST_F(WorkerStateTest, WaitsAsLongAsSomethingComes) {
  const TimePoint begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(core_.wait_for_all(
      [&] { return 20 - (std::chrono::steady_clock::now() - begin) / (kReplyTimeout / 2); }));
}

TEST_F(WorkerStateTest, WaitsNoLongerWhenNothingComes) {
  EXPECT_FALSE(core_.wait_for_all([] { return 1; }));
  EXPECT_FALSE(core_.failed());
}

TEST_F(WorkerStateTest, SaysWhatIsLateAndWhose) {
  EXPECT_THAT(
      error_of(ErrorCode::kDeadlineExceeded, [&] { core_.fail_late("nothing came", "from ps:3"); }),
      HasSubstr("nothing came within 0 s from ps:3"));
  EXPECT_TRUE(core_.failed());
}

}  // namespace
}  // namespace paceline
