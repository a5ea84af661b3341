// Tests that hold for every instruction set that this machine has.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "kernels/cpu/instruction_set.h"

namespace paceline {

/// Calls test() with each instruction set.
template <typename F>
void with_each_instruction_set(const F& test) {
  const std::vector<std::string_view> sets = instruction_sets();
  for (const std::string_view set : sets) {
    SCOPED_TRACE(set);
    ASSERT_TRUE(limit_instruction_set(set));
    test();
  }
  ASSERT_TRUE(limit_instruction_set(sets.front()));
}

}  // namespace paceline
