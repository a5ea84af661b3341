#include "paceline/rule.h"

#include <fmt/format.h>

#include <limits>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 10> kNames = {
    "sgd", "momentum", "adam", "adagrad", "rmsprop", "ftrl", "ema", "add", "assign", "adamw"};

/// What a number of a rule may be.
struct NumberRange {
  std::string_view name;
  float most;       // the least is 0
  bool below_most;  // `most` itself is refused
};

constexpr float kAnyNumber = std::numeric_limits<float>::max();

// At 1 Adam's bias correction divides by zero.
std::vector<NumberRange> ranges_of(RuleKind kind) {
  const NumberRange epsilon{"epsilon", kAnyNumber, false};
  const NumberRange accumulator{"initial_accumulator", kAnyNumber, false};
  const NumberRange decay{"decay", 1, false}, momentum{"momentum", 1, false};
  switch (kind) {
    case RuleKind::kMomentum:
      return {momentum};
    case RuleKind::kAdam:
      return {{"beta1", 1, true}, {"beta2", 1, true}, epsilon};
    case RuleKind::kAdamW:
      return {{"beta1", 1, true}, {"beta2", 1, true}, epsilon, {"weight_decay", kAnyNumber, false}};
    case RuleKind::kAdagrad:
      return {accumulator, epsilon};
    case RuleKind::kRmsprop:
      return {decay, momentum, epsilon};
    case RuleKind::kFtrl:
      return {{"l1", kAnyNumber, false}, {"l2", kAnyNumber, false}, accumulator};
    case RuleKind::kEma:
      return {decay};
    case RuleKind::kSgd:
    case RuleKind::kAdd:
    case RuleKind::kAssign:
      break;
  }
  return {};
}

std::string range_text(const NumberRange& range) {
  if (range.most == kAnyNumber) return "must be a finite number from 0 on";
  return fmt::format("must be {} {}", range.below_most ? "at least 0 and below" : "from 0 to",
                     range.most);
}

void check_number(const Rule& rule, const NumberRange& range, float number) {
  const bool fits = number >= 0 && (range.below_most ? number < range.most : number <= range.most);
  if (fits) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("[rule] {}: {} = {}: {}", rule.name(),
                                                       range.name, number, range_text(range)));
}

void check_numbers(const Rule& rule) {
  check_number(rule, {"learning_rate", kAnyNumber, false}, rule.learning_rate());
  const std::vector<NumberRange> ranges = ranges_of(rule.kind());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    check_number(rule, ranges[i], rule.numbers()[i]);
  }
}

}  // namespace

Rule::Rule(const Sgd& rule) : kind_(RuleKind::kSgd), learning_rate_(rule.learning_rate) {
  check_numbers(*this);
}

Rule::Rule(const Momentum& rule)
    : kind_(RuleKind::kMomentum),
      learning_rate_(rule.learning_rate),
      numbers_{rule.momentum, rule.nesterov ? 1.0f : 0.0f} {
  check_numbers(*this);
}

Rule::Rule(const Adam& rule)
    : kind_(RuleKind::kAdam),
      learning_rate_(rule.learning_rate),
      numbers_{rule.beta1, rule.beta2, rule.epsilon} {
  check_numbers(*this);
}

Rule::Rule(const AdamW& rule)
    : kind_(RuleKind::kAdamW),
      learning_rate_(rule.learning_rate),
      numbers_{rule.beta1, rule.beta2, rule.epsilon, rule.weight_decay} {
  check_numbers(*this);
}

Rule::Rule(const Adagrad& rule)
    : kind_(RuleKind::kAdagrad),
      learning_rate_(rule.learning_rate),
      numbers_{rule.initial_accumulator, rule.epsilon} {
  check_numbers(*this);
}

Rule::Rule(const Rmsprop& rule)
    : kind_(RuleKind::kRmsprop),
      learning_rate_(rule.learning_rate),
      numbers_{rule.decay, rule.momentum, rule.epsilon} {
  check_numbers(*this);
}

Rule::Rule(const Ftrl& rule)
    : kind_(RuleKind::kFtrl),
      learning_rate_(rule.learning_rate),
      numbers_{rule.l1, rule.l2, rule.initial_accumulator} {
  check_numbers(*this);
}

Rule::Rule(const Ema& rule) : kind_(RuleKind::kEma), numbers_{rule.decay} { check_numbers(*this); }

Rule::Rule(const Add&) : kind_(RuleKind::kAdd) {}

Rule::Rule(const Assign&) : kind_(RuleKind::kAssign) {}

Rule::Rule(std::uint8_t kind, float learning_rate, const std::array<float, kNumbers>& numbers)
    : kind_(RuleKind(kind)), learning_rate_(learning_rate), numbers_(numbers) {
  if (kind >= kNames.size()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[rule] kind {} is unknown; 0 to {} are known", kind, kNames.size() - 1));
  }
  check_numbers(*this);
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
