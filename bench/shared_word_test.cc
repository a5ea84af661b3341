#include "bench/shared_word.h"

#include <gtest/gtest.h>

#include <thread>

namespace paceline::bench {
namespace {

TEST(SharedWord, CountsOnFromZeroAfterItsLargestValue) {
  SharedWord word;
  word.set(~std::uint32_t{0});
  EXPECT_TRUE(word.has_reached(~std::uint32_t{0}));
  EXPECT_FALSE(word.has_reached(1));
  word.set(1);
  EXPECT_TRUE(word.has_reached(~std::uint32_t{0}));
  EXPECT_TRUE(word.has_reached(1));
  EXPECT_FALSE(word.has_reached(2));
}

TEST(SharedWord, LetsGoOfWhoWaitsWhenTheCountIsReached) {
  SharedWord asked, answered;
  const std::jthread other([&] {
    for (std::uint32_t i = 1; i <= 1000; ++i) {
      asked.wait_for(2 * i);
      answered.set(i);
    }
  });
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    asked.set(2 * i - 1);
    EXPECT_FALSE(answered.has_reached(i));
    asked.set(2 * i);
    answered.wait_for(i);
  }
}

}  // namespace
}  // namespace paceline::bench
