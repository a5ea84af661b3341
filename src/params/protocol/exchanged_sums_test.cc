#include "params/protocol/exchanged_sums.h"

#include <gmock/gmock.h>

#include <array>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kAttempt = 7;

class ExchangedSumsTest : public testing::Test {
 protected:
  void take(int worker, std::uint64_t attempt, std::uint32_t which, double number) {
    sums_.take(worker, attempt, which, std::array{number, 2 * number});
  }
  std::array<double, 2> sum() {
    std::array<double, 2> sums{};
    sums_.sum(members_, sums);
    return sums;
  }
  const std::vector<std::int32_t> members_{0, 1, 3};
  ExchangedSums sums_{1, 4};
};

TEST_F(ExchangedSumsTest, TheyAreWholeOnceAllMembersHaveGivenTheirs) {
  take(0, kAttempt, 0, 1);
  EXPECT_EQ(sums_.give(kAttempt, std::array{10.0, 20.0}), 0u);
  EXPECT_FALSE(sums_.whole(members_));
  take(3, kAttempt, 0, 100);
  take(3, kAttempt, 1, 1000);  // worker 3 is ahead
  ASSERT_TRUE(sums_.whole(members_));
  EXPECT_THAT(sum(), ElementsAre(111, 222));
  EXPECT_EQ(sums_.give(kAttempt, std::array{10.0, 20.0}), 1u);
  EXPECT_FALSE(sums_.whole(members_));
  take(0, kAttempt, 1, 1);
  EXPECT_THAT(sum(), ElementsAre(1011, 2022));
}

TEST_F(ExchangedSumsTest, NumbersOfAnotherAttemptDoNotCount) {
  take(0, kAttempt, 0, 1);
  take(3, kAttempt, 0, 1);
  sums_.give(kAttempt + 1, std::array{10.0, 20.0});
  EXPECT_FALSE(sums_.whole(members_));
  take(0, kAttempt + 1, 0, 2);
  take(3, kAttempt + 1, 0, 3);
  ASSERT_TRUE(sums_.whole(members_));
  EXPECT_THAT(sum(), ElementsAre(15, 30));
}

TEST_F(ExchangedSumsTest, AWorkerThatIsTooFarAheadOrGivesOtherNumbersIsRefused) {
  sums_.give(kAttempt, std::array{10.0, 20.0});
  EXPECT_THAT(error_of([&] { take(0, kAttempt, 2, 1); }), HasSubstr("worker:0 gives its sums 2"));
  take(0, kAttempt, 0, 1);
  sums_.take(3, kAttempt, 0, std::array{1.0});
  EXPECT_THAT(error_of([&] { sum(); }), HasSubstr("worker:3 gives 1 sums"));
}

}  // namespace
}  // namespace paceline
