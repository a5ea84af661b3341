#include "paceline/rule.h"

#include <fmt/format.h>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 10> kNames = {
    "sgd", "momentum", "adam", "adagrad", "rmsprop", "ftrl", "ema", "add", "assign", "adamw"};

}  // namespace

Rule::Rule(const Sgd& rule) : kind_(RuleKind::kSgd), learning_rate_(rule.learning_rate) {}

Rule::Rule(const Momentum& rule)
    : kind_(RuleKind::kMomentum),
      learning_rate_(rule.learning_rate),
      numbers_{rule.momentum, rule.nesterov ? 1.0f : 0.0f} {}

Rule::Rule(const Adam& rule)
    : kind_(RuleKind::kAdam),
      learning_rate_(rule.learning_rate),
      numbers_{rule.beta1, rule.beta2, rule.epsilon} {}

Rule::Rule(const AdamW& rule)
    : kind_(RuleKind::kAdamW),
      learning_rate_(rule.learning_rate),
      numbers_{rule.beta1, rule.beta2, rule.epsilon, rule.weight_decay} {}

Rule::Rule(const Adagrad& rule)
    : kind_(RuleKind::kAdagrad),
      learning_rate_(rule.learning_rate),
      numbers_{rule.initial_accumulator, rule.epsilon} {}

Rule::Rule(const Rmsprop& rule)
    : kind_(RuleKind::kRmsprop),
      learning_rate_(rule.learning_rate),
      numbers_{rule.decay, rule.momentum, rule.epsilon} {}

Rule::Rule(const Ftrl& rule)
    : kind_(RuleKind::kFtrl),
      learning_rate_(rule.learning_rate),
      numbers_{rule.l1, rule.l2, rule.initial_accumulator} {}

Rule::Rule(const Ema& rule) : kind_(RuleKind::kEma), numbers_{rule.decay} {}

Rule::Rule(const Add&) : kind_(RuleKind::kAdd) {}

Rule::Rule(const Assign&) : kind_(RuleKind::kAssign) {}

Rule::Rule(std::uint8_t kind, float learning_rate, const std::array<float, kNumbers>& numbers)
    : kind_(RuleKind(kind)), learning_rate_(learning_rate), numbers_(numbers) {
  if (kind >= kNames.size()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[rule] kind {} is unknown; 0 to {} are known", kind, kNames.size() - 1));
  }
}

std::string_view Rule::name() const { return kNames[std::size_t(kind_)]; }

std::vector<SlotSpec> Rule::slots() const {
  switch (kind_) {
    case RuleKind::kMomentum:
      return {{"m", false, 0}};
    case RuleKind::kAdam:
    case RuleKind::kAdamW:
      return {{"m", false, 0}, {"v", false, 0}, {"t", true, 0}};
    case RuleKind::kAdagrad:
      return {{"a", false, numbers_[0]}};
    case RuleKind::kRmsprop:
      return {{"s", false, 0}, {"m", false, 0}};
    case RuleKind::kFtrl:
      return {{"n", false, numbers_[2]}, {"z", false, 0}};
    case RuleKind::kSgd:
    case RuleKind::kEma:
    case RuleKind::kAdd:
    case RuleKind::kAssign:
      break;
  }
  return {};
}

}  // namespace paceline
