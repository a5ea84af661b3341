#include "kernels/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "base/denormals.h"
#include "kernels/testing/each_instruction_set.h"
#include "kernels/testing/ulp.h"

namespace paceline {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

float apply(UnaryFunction f, float x) {
  float y = 0;
  vector_unary(f, 0.5f, &x, &y, 1);
  return y;
}

TEST(VectorMathTest, ValuesAtTheEndsOfTheRange) {
  EXPECT_EQ(apply(UnaryFunction::kExp, -kInfinity), 0);
  EXPECT_EQ(apply(UnaryFunction::kExp, 1000), kInfinity);
  EXPECT_EQ(apply(UnaryFunction::kExp, 0), 1);
  EXPECT_EQ(apply(UnaryFunction::kLog, 0), -kInfinity);
  EXPECT_EQ(apply(UnaryFunction::kLog, kInfinity), kInfinity);
  EXPECT_EQ(apply(UnaryFunction::kLog, 1), 0);
  EXPECT_TRUE(std::isnan(apply(UnaryFunction::kLog, -1)));
  EXPECT_TRUE(std::isnan(apply(UnaryFunction::kSqrt, -1)));
  EXPECT_EQ(apply(UnaryFunction::kSigmoid, -1000), 0);
  EXPECT_EQ(apply(UnaryFunction::kSigmoid, 1000), 1);
  EXPECT_EQ(apply(UnaryFunction::kTanh, -1000), -1);
  EXPECT_EQ(apply(UnaryFunction::kTanh, 1000), 1);
  EXPECT_EQ(apply(UnaryFunction::kTanh, 0), 0);
}

// A user must be able to see a loss that became NaN.
TEST(VectorMathTest, NanStaysNan) {
  for (int f = 0; f <= int(UnaryFunction::kErf); ++f) {
    EXPECT_TRUE(std::isnan(apply(UnaryFunction(f), kNan))) << "function " << f;
  }
}

TEST(VectorMathTest, AnElementDoesNotDependOnItsPlace) {
  constexpr int kCount = 67;
  float x[kCount], whole[kCount], part[kCount];
  for (int i = 0; i < kCount; ++i) x[i] = 0.1f + 0.37f * float(i);
  for (int f = 0; f <= int(UnaryFunction::kErf); ++f) {
    vector_unary(UnaryFunction(f), 0.3f, x, whole, kCount);
    for (int i = 0; i < kCount; ++i) vector_unary(UnaryFunction(f), 0.3f, x + i, part + i, 1);
    for (int i = 0; i < kCount; ++i)
      EXPECT_EQ(whole[i], part[i]) << "function " << f << " at " << i;
  }
}

double exact_sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

struct ExactFunction {
  UnaryFunction function;
  double (*exact)(double);
};
constexpr ExactFunction kExactFunctions[] = {
    {UnaryFunction::kExp, [](double x) { return std::exp(x); }},
    {UnaryFunction::kSigmoid, &exact_sigmoid},
    {UnaryFunction::kTanh, [](double x) { return std::tanh(x); }},
    {UnaryFunction::kLog, [](double x) { return std::log(x); }},
    {UnaryFunction::kErf, [](double x) { return std::erf(x); }}};

/// Returns every `stride`-th of all 2^32 float32 values, from `first` on.
std::vector<float> bit_patterns(std::uint64_t first, std::uint64_t stride) {
  std::vector<float> values;
  for (std::uint64_t word = first; word < std::uint64_t{1} << 32; word += stride) {
    values.push_back(std::bit_cast<float>(std::uint32_t(word)));
  }
  return values;
}

/// Returns the special values: the ends of the range, overflow, underflow, and the points where one
/// method takes over from another; each with its neighbours on both sides and in both signs.
std::vector<float> special_values() {
  std::vector<float> values;
  for (const float x :
       {0.0f,        0x1p-149f,  0x1p-126f, 0x1p-24f,       0.34657359f, 0.625f,     0.70710678f,
        0.92773438f, 1.0f,       9.0109f,   16.635532f,     87.33655f,   88.722839f, 89.0f,
        103.27893f,  103.97208f, 104.0f,    3.40282347e38f, kInfinity,   kNan}) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(x);
    for (std::uint32_t next = word - std::min(word, 50u); next < word + 50; ++next) {
      values.push_back(std::bit_cast<float>(next));
      values.push_back(-values.back());
    }
  }
  return values;
}

void expect_within_two_ulp(const ExactFunction& f, const std::vector<float>& x) {
  std::vector<double> exact(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) exact[i] = f.exact(double(x[i]));
  std::vector<float> y(x.size());
  with_each_instruction_set([&] {
    vector_unary(f.function, 0, x.data(), y.data(), std::int64_t(x.size()));
    std::size_t worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (error_in_ulp(y[i], exact[i]) > error_in_ulp(y[worst], exact[worst])) worst = i;
    }
    EXPECT_LE(error_in_ulp(y[worst], exact[worst]), 2)
        << "function " << int(f.function) << " at " << x[worst] << " gives " << y[worst] << " for "
        << exact[worst];
  });
}

TEST(VectorMathTest, WithinTwoUlpAllOverTheRange) {
  for (const ExactFunction& f : kExactFunctions) {
    expect_within_two_ulp(f, bit_patterns(0, 10007));
    expect_within_two_ulp(f, special_values());
  }
}

// Runs as kernels do: numbers below 1.2e-38 count as zero, as arguments and as results.
TEST(VectorMathTest, WithinTwoUlpWhereDenormalsAreZero) {
  constexpr float kLeast = std::numeric_limits<float>::min();
  for (const ExactFunction& f : kExactFunctions) {
    std::vector<float> x = bit_patterns(1, 20011);
    std::ranges::copy(special_values(), std::back_inserter(x));
    std::vector<float> y(x.size());
    with_each_instruction_set([&] {
      {
        const FlushDenormals flush;
        vector_unary(f.function, 0, x.data(), y.data(), std::int64_t(x.size()));
      }
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = f.exact(std::abs(x[i]) < kLeast ? 0 : double(x[i]));
        if (y[i] == 0 && std::abs(exact) < double(kLeast)) continue;
        ASSERT_LE(error_in_ulp(y[i], exact), 2) << "function " << int(f.function) << " at " << x[i];
      }
    });
  }
}

// Takes an hour. Run it with `scripts/slow_checks floats` after a change of a function.
TEST(VectorMathTest, DISABLED_WithinTwoUlpForEveryFloat) {
  constexpr std::uint64_t kParts = 4096;
  for (const ExactFunction& f : kExactFunctions) {
    for (std::uint64_t part = 0; part < kParts; ++part) {
      expect_within_two_ulp(f, bit_patterns(part, kParts));
    }
  }
}

TEST(VectorMathTest, TheFirstOfTheLargestAndNanIsIgnored) {
  with_each_instruction_set([] {
    for (std::size_t n = 1; n < 40; ++n) {
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<float> x(n, -1.0f);
        for (std::size_t i = at; i < n; i += 3) x[i] = 5;
        if (at > 0) x[at - 1] = at > 1 ? kNan : -kInfinity;
        EXPECT_EQ(vector_arg_max(x.data(), std::int64_t(n)), std::int64_t(at));
      }
    }
    const float x[] = {kNan, 1, 2};
    EXPECT_EQ(vector_arg_max(x, 3), 0);
  });
}

TEST(VectorMathTest, TheLargestOfARow) {
  with_each_instruction_set([] {
    for (std::size_t n = 1; n < 70; ++n) {
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<float> x(n, -2.0f);
        x[at] = -1;
        EXPECT_EQ(vector_max(x.data(), std::int64_t(n)), -1) << at << " of " << n;
        x[at] = kNan;
        EXPECT_TRUE(std::isnan(vector_max(x.data(), std::int64_t(n)))) << at << " of " << n;
      }
    }
  });
}

TEST(VectorMathTest, TheLargerOfTwoIsNanWhereOneOfThemIs) {
  with_each_instruction_set([] {
    for (std::size_t n = 1; n < 40; ++n) {
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<float> x(n, 1.0f), y(n, 2.0f), nan(n, 1.0f);
        x[at] = 3;
        nan[at] = kNan;
        vector_max_into(x.data(), y.data(), std::int64_t(n));
        EXPECT_EQ(y[at], 3);
        EXPECT_EQ(std::count(y.begin(), y.end(), 2.0f), std::int64_t(n) - 1);
        vector_max_into(nan.data(), y.data(), std::int64_t(n));
        EXPECT_TRUE(std::isnan(y[at])) << "from x, " << at << " of " << n;
        vector_max_into(x.data(), y.data(), std::int64_t(n));
        EXPECT_TRUE(std::isnan(y[at])) << "in y, " << at << " of " << n;
      }
    }
  });
}

TEST(VectorMathTest, ALongSumKeepsItsDigits) {
  const std::vector<float> ones(20'000'001, 1.0f);
  EXPECT_EQ(vector_sum(ones.data(), std::int64_t(ones.size())), 20'000'001.0);
}

}  // namespace
}  // namespace paceline
