#include "predict/bound.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(Bound, IsTimeAtTheRoof) {
  StepCost work;
  work.ops = {{1000, 10}, {10, 4000}};
  work.rule_bytes = 600;
  work.link_bytes_in = 30;
  work.link_bytes_out = 20;
  const Roof roof{.flops_per_s = 100,
                  .bytes_per_s = 200,
                  .rule_bytes_per_s = 150,
                  .link_bytes_per_s = 50,
                  .cache_bytes = 1000};
  const Bound bound = bound_of(work, roof);
  EXPECT_DOUBLE_EQ(bound.ops, 10 + 20);
  EXPECT_DOUBLE_EQ(bound.rules, 4);
  EXPECT_DOUBLE_EQ(bound.link, 1);
  EXPECT_DOUBLE_EQ(bound.total(), 35);
}

TEST(Bound, WhatTheCacheHoldsNeedNotComeFromMemory) {
  StepCost work;
  work.ops = {{10, 4000}};
  const Roof roof{.flops_per_s = 100,
                  .bytes_per_s = 200,
                  .rule_bytes_per_s = 200,
                  .link_bytes_per_s = 0,
                  .cache_bytes = 4000};
  EXPECT_DOUBLE_EQ(bound_of(work, roof).total(), 0.1);
}

}  // namespace
}  // namespace paceline
