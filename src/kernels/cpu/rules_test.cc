#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/denormals.h"
#include "base/philox.h"
#include "kernels/naive/rules.h"
#include "kernels/rule_kernel.h"
#include "kernels/testing/all_rules.h"

namespace paceline {
namespace {

// A variable with its slots.
struct Freshness {
  std::vector<float> values;
  std::vector<std::vector<float>> slots;

  Freshness(const Rule& rule, std::size_t size, bool averaged = false) : values(size) {
    for (const SlotSpec& slot : rule.slots()) {
      if (!slot.scalar) slots.emplace_back(size, slot.initial);
    }
    if (averaged) slots.emplace_back(size, 0.25f);
  }
  std::vector<float*> slots_at(std::size_t begin) {
    std::vector<float*> pointers;
    for (std::vector<float>& slot : slots) pointers.push_back(slot.data() + begin);
    return pointers;
  }
  bool operator==(const Freshness& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!same(slots[i], other.slots[i])) return false;
    }
    return same(values, other.values);
  }
};

// Applies the rule to elements [begin, end) with the function `apply`, and returns its result.
template <typename Apply>
auto update(const Apply& apply, const Rule& rule, const RuleStep& step, Freshness& held,
            const std::vector<float>& gradient, std::size_t begin, std::size_t end) {
  const std::vector<float*> slots = held.slots_at(begin);
  return apply(
      rule, step,
      {{held.values.data() + begin, end - begin}, slots, {gradient.data() + begin, end - begin}});
}

void update(const Rule& rule, const RuleStep& step, Freshness& held,
            const std::vector<float>& gradient) {
  update(&apply_rule, rule, step, held, gradient, 0, gradient.size());
}

std::vector<float> random_values(std::size_t size, std::uint64_t key) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = to_unit_float(philox(key, i, 0)[0]) * 2 - 1;
  return values;
}

class EveryRule : public testing::TestWithParam<NamedRule> {};
INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, testing::ValuesIn(all_rules()),
                         [](const auto& test) { return test.param.name; });

/// Returns all rules but the moving average, which cannot be applied to rows.
std::vector<NamedRule> rules_of_rows() {
  std::vector<NamedRule> rules = all_rules();
  std::erase_if(rules, [](const NamedRule& rule) { return rule.rule.kind() == RuleKind::kEma; });
  return rules;
}

class RuleOfRows : public EveryRule {};
INSTANTIATE_TEST_SUITE_P(Rules, RuleOfRows, testing::ValuesIn(rules_of_rows()),
                         [](const auto& test) { return test.param.name; });

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    norm += double(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

TEST_P(EveryRule, EqualsTheNaiveLoop) {
  const Rule& rule = GetParam().rule;
  for (const std::size_t size : {0, 1, 3, 8, 16, 17, 33, 1000}) {
    Freshness fast(rule, size), naive(rule, size);
    fast.values = naive.values = random_values(size, 1);
    for (int t = 1; t <= 4; ++t) {
      const RuleStep step{rule.learning_rate(), 0.7f, 0.01f, t};
      const std::vector<float> gradient = random_values(size, std::uint64_t(t) + 10);
      update(rule, step, fast, gradient);
      update(&apply_rule_naively, rule, step, naive, gradient, 0, size);
    }
    EXPECT_LT(distance(fast.values, naive.values), 2e-6) << size;
    for (std::size_t i = 0; i < fast.slots.size(); ++i) {
      EXPECT_LT(distance(fast.slots[i], naive.slots[i]), 2e-6) << size << " slot " << i;
    }
  }
}

TEST_P(EveryRule, KeepsAMovingAverageInTheSamePass) {
  const Rule& rule = GetParam().rule;
  for (const std::size_t size : {1, 16, 33, 1000, 10'000}) {
    Freshness fast(rule, size, true), naive(rule, size, true), without(rule, size);
    fast.values = naive.values = without.values = random_values(size, 1);
    for (int t = 1; t <= 4; ++t) {
      const float rate = t == 3 ? 0 : rule.learning_rate();  // a schedule may reach 0
      const RuleStep step{rate, 0.7f, 0.01f, t};
      RuleStep averaged = step;
      averaged.average_decay = 0.75f;
      const std::vector<float> gradient = random_values(size, std::uint64_t(t) + 10);
      update(rule, averaged, fast, gradient);
      update(&apply_rule_naively, rule, averaged, naive, gradient, 0, size);
      update(rule, step, without, gradient);
    }
    EXPECT_LT(distance(fast.slots.back(), naive.slots.back()), 2e-6) << size;
    fast.slots.pop_back();
    EXPECT_EQ(fast, without) << size << ": the average must change nothing else";
  }
}

TEST_P(EveryRule, SplittingARangeChangesNoBit) {
  const Rule& rule = GetParam().rule;
  const std::size_t size = 1001;
  Freshness whole(rule, size), split(rule, size);
  whole.values = split.values = random_values(size, 1);
  for (int t = 1; t <= 3; ++t) {
    const RuleStep step{rule.learning_rate(), 0.9f, 0.02f, t};
    const std::vector<float> gradient = random_values(size, std::uint64_t(t) + 10);
    update(rule, step, whole, gradient);
    const std::size_t cuts[] = {0, 1, 2, 9, 42, 58, 100, 611, 1000, size};
    for (std::size_t i = 1; i < std::size(cuts); ++i) {
      update(&apply_rule, rule, step, split, gradient, cuts[i - 1], cuts[i]);
    }
  }
  EXPECT_EQ(whole, split);
}

TEST_P(EveryRule, AppliesNothingFromANumberOnThatIsNotFinite) {
  const Rule& rule = GetParam().rule;
  constexpr std::size_t kSize = 20'001, kMostLeftOut = 256;
  const RuleStep step{
      .learning_rate = rule.learning_rate(), .clip_scale = 0.9f, .must_be_finite = true};
  for (const float bad : {NAN, -INFINITY}) {
    for (const std::size_t at : {0, 1, 255, 256, 700, 9000, 20'000}) {
      std::vector<float> gradient = random_values(kSize, 10);
      Freshness all(rule, kSize), before(rule, kSize);
      all.values = before.values = random_values(kSize, 1);
      EXPECT_EQ(update(&apply_rule, rule, step, all, gradient, 0, kSize), kSize);
      all.values = before.values;
      all.slots = before.slots;
      gradient[at] = bad;
      gradient.back() = NAN;
      const std::size_t applied = update(&apply_rule, rule, step, all, gradient, 0, kSize);
      EXPECT_LE(applied, at);
      EXPECT_GE(applied + kMostLeftOut, at);
      update(&apply_rule, rule, step, before, gradient, 0, applied);
      EXPECT_EQ(all, before) << at;
    }
  }
}

TEST_P(RuleOfRows, AreUpdatedAsAWholeWouldAndOthersNotAtAll) {
  const Rule& rule = GetParam().rule;
  const std::int64_t rows = 7, row_size = 5;
  Freshness dense(rule, std::size_t(rows * row_size)), sparse(rule, std::size_t(rows * row_size));
  dense.values = sparse.values = random_values(std::size_t(rows * row_size), 1);
  const Freshness before = sparse;

  const std::vector<std::int32_t> ids = {5, 0, 3};
  const std::vector<float> given = random_values(ids.size() * std::size_t(row_size), 2);
  std::vector<float> gradient(std::size_t(rows * row_size));
  for (std::size_t r = 0; r < ids.size(); ++r) {
    std::memcpy(&gradient[std::size_t(ids[r]) * 5], &given[r * 5], 5 * sizeof(float));
  }
  const RuleStep step{rule.learning_rate(), 0.9f, 0.02f, 1};
  update(rule, step, dense, gradient);
  const std::vector<float*> slots = sparse.slots_at(0);
  apply_rule_to_rows(rule, step, {sparse.values.data(), slots, ids, given.data(), row_size});

  for (std::int32_t row = 0; row < rows; ++row) {
    const bool named = row == 5 || row == 0 || row == 3;
    const Freshness& expected = named ? dense : before;
    for (std::size_t i = std::size_t(row) * 5; i < std::size_t(row) * 5 + 5; ++i) {
      EXPECT_EQ(sparse.values[i], expected.values[i]) << i;
      for (std::size_t s = 0; s < sparse.slots.size(); ++s) {
        EXPECT_EQ(sparse.slots[s][i], expected.slots[s][i]) << i;
      }
    }
  }
}

TEST_P(EveryRule, AppliesWithoutGradientTermsWhatComesAsAValue) {
  const Rule& rule = GetParam().rule;
  const bool value = rule.kind() == RuleKind::kEma || rule.kind() == RuleKind::kAdd ||
                     rule.kind() == RuleKind::kAssign;
  Freshness plain(rule, 3), scaled(rule, 3);
  plain.values = scaled.values = {1, 2, 3};
  update(rule, {rule.learning_rate(), 1, 0, 1}, plain, {0.5f, 0.25f, -1});
  update(rule, {rule.learning_rate(), 0.5f, 0.1f, 1}, scaled, {0.5f, 0.25f, -1});
  EXPECT_EQ(plain == scaled, value);
}

TEST(DelayedNesterov, OfEveryContributionIsNesterovsMomentum) {
  const std::size_t size = 100;
  const Rule delayed = DelayedNesterov{0.1f, 0.9f, 1}, plain = Momentum{0.1f, 0.9f, true};
  Freshness one(delayed, size), other(plain, size);
  one.values = other.values = random_values(size, 1);
  for (int t = 1; t <= 10; ++t) {
    const RuleStep step{0.1f, 1, 0, t};
    const std::vector<float> gradient = random_values(size, std::uint64_t(t) + 10);
    update(delayed, step, one, gradient);
    update(plain, step, other, gradient);
  }
  EXPECT_LT(distance(one.values, other.values), 1e-6);
}

// Three workers make equal contributions. Every third contribution completes a round and renews the
// momentum.
TEST(DelayedNesterov, RenewsItsMomentumWithEveryPeriod) {
  const Rule delayed = DelayedNesterov{1, 0.5f, 3};
  Freshness held(delayed, 1);
  std::vector<float> values;
  for (int t = 1; t <= 6; ++t) {
    update(delayed, {1, 1, 0, t}, held, {3});
    values.push_back(held.values[0]);
  }
  EXPECT_EQ(values, (std::vector<float>{-1, -2, -4.5f, -5.5f, -6.5f, -9.75f}));
  EXPECT_EQ(held.slots[0][0], 4.5f);
  EXPECT_EQ(held.slots[1][0], 0);
}

TEST(CustomRule, AdamWrittenOutIsAdam) {
  const std::size_t size = 5000;
  Freshness built_in(Adam{}, size), written(written_adam(), size);
  built_in.values = written.values = random_values(size, 1);
  for (int t = 1; t <= 50; ++t) {
    const RuleStep step{1e-3f, 0.7f, 0.01f, t};
    const std::vector<float> gradient = random_values(size, std::uint64_t(t) + 10);
    update(Adam{}, step, built_in, gradient);
    update(written_adam(), step, written, gradient);
  }
  EXPECT_LT(distance(written.values, built_in.values), 1e-6);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_LT(distance(written.slots[i], built_in.slots[i]), 1e-6) << i;
  }
}

struct MatrixSize {
  std::int64_t rows, columns;
};

void update_whole(const Rule& rule, const RuleStep& step, Freshness& held,
                  const std::vector<float>& gradient, MatrixSize size, ThreadPool* pool) {
  const std::vector<float*> slots = held.slots_at(0);
  const RuleWhole whole{held.values.data(), slots, gradient.data(), size.rows, size.columns};
  if (pool == nullptr) return apply_rule_to_whole_naively(rule, step, whole);
  apply_rule_to_whole(rule, step, whole, *pool);
}

TEST(WholeRule, EqualsTheNaiveLoop) {
  ThreadPool pool(2);
  for (const auto& [rows, columns] :
       {MatrixSize{1, 1}, {1, 7}, {7, 1}, {5, 3}, {3, 5}, {64, 64}, {70, 33}}) {
    const std::size_t size = std::size_t(rows * columns);
    Freshness fast(muon(), size, true), naive(muon(), size, true);
    fast.values = naive.values = random_values(size, 1);
    for (int t = 1; t <= 3; ++t) {
      const RuleStep step{0.02f, 0.7f, 0.01f, t, 0.9f};
      const std::vector<float> gradient = random_values(size, std::uint64_t(t) + 10);
      update_whole(muon(), step, fast, gradient, {rows, columns}, &pool);
      update_whole(muon(), step, naive, gradient, {rows, columns}, nullptr);
    }
    EXPECT_LT(distance(fast.values, naive.values), 2e-5) << rows << " by " << columns;
    for (std::size_t i = 0; i < fast.slots.size(); ++i) {
      EXPECT_LT(distance(fast.slots[i], naive.slots[i]), 2e-5) << rows << " slot " << i;
    }
  }
}

// Five steps of the iteration bring all singular values near 1 (Jordan et al. 2024: 0.7 to 1.2), so
// that a row of the update of a square matrix has about that length.
TEST(WholeRule, MuonsUpdateIsNearlyOrthogonal) {
  ThreadPool pool(1);
  constexpr std::int64_t kSize = 32;
  Freshness held(muon(), kSize * kSize);
  const std::vector<float> gradient = random_values(kSize * kSize, 3);
  update_whole(muon(1), {.learning_rate = 1}, held, gradient, {kSize, kSize}, &pool);
  double squares = 0;
  for (const float w : held.values) squares += double(w) * w;
  EXPECT_GT(squares / kSize, 0.4);
  EXPECT_LT(squares / kSize, 1.5);
  double across = 0;  // over the first two rows
  for (std::size_t i = 0; i < kSize; ++i) across += double(held.values[i]) * held.values[kSize + i];
  EXPECT_LT(std::abs(across), 0.35);
}

// The published equations, computed by hand in float64 for one element and a few contributions.
struct Worked {
  Rule rule;
  std::vector<float> gradients;
  float begin;
  std::vector<double> values;  // after each contribution
};

void expect_worked(const Worked& worked) {
  Freshness held(worked.rule, 1);
  held.values[0] = worked.begin;
  for (std::size_t t = 0; t < worked.gradients.size(); ++t) {
    const RuleStep step{worked.rule.learning_rate(), 1, 0, std::int64_t(t) + 1};
    update(worked.rule, step, held, {worked.gradients[t]});
    EXPECT_NEAR(held.values[0], worked.values[t], 1e-6) << "contribution " << t + 1;
  }
}

TEST(PublishedEquations, Sgd) { expect_worked({Sgd{0.1f}, {0.5f, -1}, 1, {0.95, 1.05}}); }

// Polyak's momentum as in Sutskever et al., ICML 2013, with the rate outside the velocity:
// m = 0.5, then 0.9·0.5 − 1 = −0.55.
TEST(PublishedEquations, Momentum) {
  expect_worked({Momentum{0.1f, 0.9f, false}, {0.5f, -1}, 1, {0.95, 1.005}});
}

// w − lr·(g + 0.9·m): 1 − 0.1·(0.5 + 0.45), then 0.905 − 0.1·(−1 + 0.9·(−0.55)).
TEST(PublishedEquations, NesterovMomentum) {
  expect_worked({Momentum{0.1f, 0.9f, true}, {0.5f, -1}, 1, {0.905, 1.0545}});
}

// Algorithm 1 of Kingma & Ba, arXiv 1412.6980, with its corrected moments m̂ and v̂:
// w − 0.001·m̂/(√v̂ + ε); m̂ = 0.5, √v̂ = 0.5, then m̂ = −0.055/0.19, v̂ = 0.00124975/0.001999.
TEST(PublishedEquations, Adam) {
  expect_worked({Adam{0.001f}, {0.5f, -1}, 1, {0.99900000002, 0.9993661035}});
}

// Duchi et al., JMLR 12, 2011, diagonal form: 1 − 0.1·0.5/√0.35, then + 0.1·1/√1.35.
TEST(PublishedEquations, Adagrad) {
  expect_worked({Adagrad{0.1f, 0.1f, 1e-7f}, {0.5f, -1}, 1, {0.9154845888, 1.0015508780}});
}

// Tieleman & Hinton 2012, lecture 6.5, with momentum: s = 0.025, 0.1225; m = 0.1·0.5/√0.025, then
// 0.5·m − 0.1/√0.1225.
TEST(PublishedEquations, Rmsprop) {
  expect_worked({Rmsprop{0.1f, 0.9f, 0.5f, 1e-10f}, {0.5f, -1}, 1, {0.6837722346, 0.8113726375}});
}

// Algorithm 1 of McMahan et al., KDD 2013, with α = 0.1, β = 0, λ1 = 0.2, λ2 = 0.3:
// n = 0.35, 1.35, 1.36; z = 0.5, −0.2247685, −0.1248577; the last |z| is below λ1.
TEST(PublishedEquations, Ftrl) {
  expect_worked(
      {Ftrl{0.1f, 0.2f, 0.3f, 0.1f}, {0.5f, -1, 0.1f}, 0, {-0.0482619288, 0.0020780758, 0}});
}

TEST(PublishedEquations, MovingAverageAddAndAssign) {
  expect_worked({Ema{0.75f}, {3, 0}, 1, {1.5, 1.125}});
  expect_worked({Add{}, {3, -1}, 1, {4, 3}});
  expect_worked({Assign{}, {3, -1}, 1, {3, -1}});
}

// Long tensors take another path to memory.
TEST(Assign, OfManyElementsWritesThemAndNoOthersWhereverTheyBegin) {
  for (const std::size_t begin : {0u, 1u, 15u, 16u, 33u}) {
    const std::size_t end = begin + 20'003;
    Freshness held(Assign{}, end + 40);
    const std::vector<float> given = random_values(end + 40, 3);
    update(&apply_rule, Assign{}, {}, held, given, begin, end);
    for (std::size_t i = 0; i < held.values.size(); ++i) {
      ASSERT_EQ(held.values[i], i >= begin && i < end ? given[i] : 0.0f) << begin << ", " << i;
    }
  }
}

// A ps creates the slot on a thread that keeps denormals, and updates it on one that takes them for
// zeros.
TEST(MovingAverage, WithADenormalDecayIsTheValue) {
  const FlushDenormals flush;
  std::vector<float> value(5, 1.0f), average(5, 3.0f);
  const std::vector<float> gradient(5, 0.5f);
  float* const slots[] = {average.data()};
  apply_rule(Sgd{0.5f}, {.learning_rate = 0.5f, .average_decay = 1e-40f},
             {.values = value, .slots = slots, .gradient = gradient});
  EXPECT_EQ(value, std::vector<float>(5, 0.75f));
  EXPECT_EQ(average, value);
}

TEST(Ftrl, LeavesTheVariableAloneWithoutARateOrWithADenormalOne) {
  const Rule rule = Ftrl{0.0f};
  Freshness held(rule, 2);
  held.values = {1, 2};
  const Freshness before = held;
  for (const float rate : {0.0f, 1e-40f}) {
    update(rule, {rate, 1, 0, 1}, held, {0, 6});
    EXPECT_EQ(held, before) << rate;
  }
}

}  // namespace
}  // namespace paceline
