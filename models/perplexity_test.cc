#include "models/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::models {
namespace {

TEST(Perplexity, IsOfTheMeanCostOfAWord) {
  Perplexity perplexity;
  // Two batches of 20 time steps, with perplexities 100 and 400.
  perplexity.add(20 * std::log(100.0), 20);
  perplexity.add(20 * std::log(400.0), 20);
  EXPECT_NEAR(perplexity.value(), 200, 1e-9);
}

TEST(Perplexity, OfNothingIsNoNumber) { EXPECT_TRUE(std::isnan(Perplexity().value())); }

TEST(PerplexityEnds, AreOfTheFirstAndTheLastTenSteps) {
  PerplexityEnds ends;
  for (const double each : {900.0, 500.0, 30.0}) {
    for (int step = 0; step < 10; ++step) ends.add(20 * std::log(each), 20);
  }
  EXPECT_NEAR(*ends.first(), 900, 1e-9);
  EXPECT_NEAR(*ends.last(), 30, 1e-9);
  // After the next five steps, the last ten steps are five at 30 and five at 270.
  for (int step = 0; step < 5; ++step) ends.add(20 * std::log(270.0), 20);
  EXPECT_NEAR(*ends.last(), 90, 1e-9);
  EXPECT_NEAR(*ends.first(), 900, 1e-9);
}

TEST(PerplexityEnds, OfFewStepsAreOfThose) {
  PerplexityEnds ends;
  EXPECT_FALSE(ends.first());
  EXPECT_FALSE(ends.last());
  ends.add(20 * std::log(100.0), 20);
  ends.add(20 * std::log(400.0), 20);
  EXPECT_NEAR(*ends.first(), 200, 1e-9);
  EXPECT_NEAR(*ends.last(), 200, 1e-9);
}

}  // namespace
}  // namespace paceline::models
