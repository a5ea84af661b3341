#include "kernels/cpu/vector_cast.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/testing/each_instruction_set.h"

namespace paceline {
namespace {

/// Returns floats of all signs and exponents, with mantissas near those that round up, down and to
/// even.
std::vector<float> floats_to_round() {
  std::vector<float> values;
  for (std::uint32_t high = 0; high < 0x10000; high += 3) {
    for (const std::uint32_t low :
         {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(std::bit_cast<float>((high << 16) | low));
    }
  }
  return values;
}

template <typename Half>
void expect_narrowed_like_one_by_one() {
  const std::vector<float> x = floats_to_round();
  std::vector<Half> y(x.size());
  with_each_instruction_set([&] {
    vector_cast(x.data(), y.data(), std::int64_t(x.size()));
    std::size_t different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) different += y[i].bits == Half(x[i]).bits ? 0 : 1;
    EXPECT_EQ(different, 0);
  });
}

template <typename Half>
void expect_widened_like_one_by_one() {
  std::vector<Half> x(0x10000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i].bits = std::uint16_t(i);
  std::vector<float> y(x.size());
  with_each_instruction_set([&] {
    vector_cast(x.data(), y.data(), std::int64_t(x.size()));
    std::size_t different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool same = std::bit_cast<std::uint32_t>(y[i]) ==
                        std::bit_cast<std::uint32_t>(static_cast<float>(x[i]));
      different += same ? 0 : 1;
    }
    EXPECT_EQ(different, 0);
  });
}

TEST(VectorCastTest, NarrowsToBFloat16) { expect_narrowed_like_one_by_one<BFloat16>(); }
TEST(VectorCastTest, NarrowsToFloat16) { expect_narrowed_like_one_by_one<Float16>(); }
TEST(VectorCastTest, WidensEveryBFloat16) { expect_widened_like_one_by_one<BFloat16>(); }
TEST(VectorCastTest, WidensEveryFloat16) { expect_widened_like_one_by_one<Float16>(); }

TEST(VectorCastTest, WritesNoFurtherThanAsked) {
  with_each_instruction_set([] {
    for (std::int64_t n = 0; n < 40; ++n) {
      const std::vector<float> x(40, 1.0f);
      std::vector<BFloat16> y(41);
      vector_cast(x.data(), y.data(), n);
      for (std::int64_t i = 0; i < 41; ++i) EXPECT_EQ(y[std::size_t(i)].bits, i < n ? 0x3f80 : 0);
    }
  });
}

}  // namespace
}  // namespace paceline
