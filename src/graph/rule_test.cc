#include "paceline/rule.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using Numbers = std::array<float, Rule::kNumbers>;

std::vector<std::string> slot_names(const Rule& rule) {
  std::vector<std::string> names;
  for (const SlotSpec& slot : rule.slots()) names.push_back(slot.name);
  return names;
}

TEST(Rule, KeepsItsNumbersInTheOrderOfItsFields) {
  const Rule momentum = Momentum{0.1f, 0.8f, true};
  EXPECT_EQ(momentum.kind(), RuleKind::kMomentum);
  EXPECT_EQ(momentum.learning_rate(), 0.1f);
  EXPECT_EQ(momentum.numbers(), (Numbers{0.8f, 1, 0, 0}));
  EXPECT_EQ(Rule(Adam{1, 0.2f, 0.3f, 4}).numbers(), (Numbers{0.2f, 0.3f, 4, 0}));
  EXPECT_EQ(Rule(AdamW{1, 0.2f, 0.3f, 4, 5}).numbers(), (Numbers{0.2f, 0.3f, 4, 5}));
  EXPECT_EQ(Rule(Adagrad{1, 2, 3}).numbers(), (Numbers{2, 3, 0, 0}));
  EXPECT_EQ(Rule(Rmsprop{1, 0.2f, 0.3f, 4}).numbers(), (Numbers{0.2f, 0.3f, 4, 0}));
  EXPECT_EQ(Rule(Ftrl{1, 2, 3, 4}).numbers(), (Numbers{2, 3, 4, 0}));
  EXPECT_EQ(Rule(DelayedNesterov{1, 0.5f, 4}).numbers(), (Numbers{0.5f, 4, 0, 0}));
  EXPECT_EQ(Rule(Ema{0.5f}).numbers(), (Numbers{0.5f, 0, 0, 0}));
  EXPECT_EQ(Rule(Sgd{2}).learning_rate(), 2);
}

TEST(Rule, SlotsBeginAsTheRuleSays) {
  EXPECT_TRUE(Rule(Sgd{}).slots().empty());
  EXPECT_TRUE(Rule(Ema{}).slots().empty());
  EXPECT_TRUE(Rule(Add{}).slots().empty());
  EXPECT_TRUE(Rule(Assign{}).slots().empty());
  EXPECT_EQ(slot_names(Momentum{}), std::vector<std::string>{"m"});
  EXPECT_EQ(slot_names(Adam{}), (std::vector<std::string>{"m", "v", "t"}));
  EXPECT_EQ(slot_names(AdamW{}), (std::vector<std::string>{"m", "v", "t"}));
  EXPECT_EQ(slot_names(Rmsprop{}), (std::vector<std::string>{"s", "m"}));
  EXPECT_EQ(slot_names(Ftrl{}), (std::vector<std::string>{"n", "z"}));
  EXPECT_EQ(slot_names(DelayedNesterov{}), (std::vector<std::string>{"m", "p", "t"}));
  EXPECT_TRUE(Rule(Adam{}).slots()[2].scalar);
  EXPECT_FALSE(Rule(Adam{}).slots()[0].scalar);
  EXPECT_EQ(Rule(Adagrad{.initial_accumulator = 0.3f}).slots()[0].initial, 0.3f);
  EXPECT_EQ(Rule(Ftrl{.initial_accumulator = 0.2f}).slots()[0].initial, 0.2f);
}

TEST(Rule, ComesBackFromItsParts) {
  for (const Rule& rule : {Rule(Sgd{}), Rule(Momentum{.nesterov = true}), Rule(Adam{}),
                           Rule(Adagrad{}), Rule(Rmsprop{}), Rule(Ftrl{}), Rule(Ema{}), Rule(Add{}),
                           Rule(Assign{}), Rule(AdamW{}), Rule(DelayedNesterov{})}) {
    const Rule back(std::uint8_t(rule.kind()), rule.learning_rate(), rule.numbers());
    EXPECT_EQ(back, rule) << rule.name();
  }
  EXPECT_NE(Rule(Sgd{0.1f}), Rule(Sgd{0.2f}));
  EXPECT_EQ(Rule(Adam{}).name(), "adam");
  EXPECT_EQ(Rule(Assign{}).name(), "assign");
  EXPECT_EQ(Rule(AdamW{}).name(), "adamw");
  EXPECT_THROW(Rule(10, 0, {}), Error);
}

std::string refused(const std::function<void()>& make) {
  return error_of(ErrorCode::kInvalidArgument, make);
}

TEST(Rule, NumbersThatCannotBeAreRefused) {
  EXPECT_EQ(refused([] { Rule(Adam{.beta1 = 1.5f}); }),
            "[rule] adam: beta1 = 1.5: must be at least 0 and below 1");
  EXPECT_NE(refused([] { Rule(Adam{.beta2 = 1}); }), "");
  EXPECT_NE(refused([] { Rule(Adam{.epsilon = -1}); }), "");
  EXPECT_EQ(refused([] { Rule(Sgd{-0.1f}); }),
            "[rule] sgd: learning_rate = -0.1: must be a finite number from 0 on");
  EXPECT_EQ(refused([] { Rule(AdamW{.weight_decay = -1}); }),
            "[rule] adamw: weight_decay = -1: must be a finite number from 0 on");
  EXPECT_NE(refused([] { Rule(Sgd{std::numeric_limits<float>::quiet_NaN()}); }), "");
  EXPECT_NE(refused([] { Rule(Sgd{std::numeric_limits<float>::infinity()}); }), "");
  EXPECT_EQ(refused([] { Rule(Momentum{.momentum = 1.1f}); }),
            "[rule] momentum: momentum = 1.1: must be from 0 to 1");
  EXPECT_NE(refused([] { Rule(Adagrad{.initial_accumulator = -1}); }), "");
  EXPECT_NE(refused([] { Rule(Rmsprop{.decay = 2}); }), "");
  EXPECT_NE(refused([] { Rule(Ftrl{.l1 = -1}); }), "");
  EXPECT_NE(refused([] { Rule(Ema{.decay = -0.1f}); }), "");
  EXPECT_EQ(refused([] { Rule(DelayedNesterov{.period = 0}); }),
            "[rule] delayed_nesterov: period = 0: must be from 1 to 16777216");
  EXPECT_NE(refused([] { Rule(std::uint8_t(RuleKind::kAdam), 1, {1.5f, 0, 0, 0}); }), "");
}

}  // namespace
}  // namespace paceline
